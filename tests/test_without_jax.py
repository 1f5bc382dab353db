"""Asking needs no compiler: a loaded prior is used in processes where importing JAX raises."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import metaprior as mp
from metaprior.methods import Ensemble, FPacohMap, Guarded, Weighed

ROOT = Path(__file__).parents[1]
SPACE = mp.Space(
    rate=mp.Real(1e-3, 1.0, log=True), depth=mp.Integer(1, 8), kind=mp.Categorical(["a", "b", "c"])
)
BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"jax", "jaxlib", "equinox", "optax"}:
            raise ImportError(f"{name} is imported, and asking must not need it")

sys.meta_path.insert(0, Blocked())
"""
HEAVY = {"jax", "jaxlib", "equinox", "optax", "pandas", "matplotlib", "optuna", "rich", "typer"}


@pytest.fixture(scope="module", params=[Weighed, Guarded], ids=["weighed", "guarded"])
def folder(request, tmp_path_factory):
    """An ensemble over a mixed space, as `learn` makes them of methods that can be weighed, and of
    those that cannot."""
    rng = np.random.default_rng(0)
    runs = [(SPACE.decode(rng.uniform(size=(6, 5))), rng.normal(size=6)) for _ in range(3)]
    tasks = mp.Tasks.from_runs(runs, space=SPACE, direction="minimize")
    method = request.param(Ensemble(FPacohMap(num_steps=20), members=2))
    return mp.learn(tasks, method=method, seed=0).save(tmp_path_factory.mktemp("saved") / "prior")


def run(arguments, folder, *, blocked=True):
    """What a new process prints that runs this code, or this command, beside the prior."""
    program = BLOCKED if blocked else ""
    if isinstance(arguments, str):
        program += textwrap.dedent(arguments)
    else:
        program += f"sys.argv = {['metaprior', *arguments]!r}\n"
        program += "from metaprior.cli import main\nmain()\n"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_blocked_process_cannot_import_jax(folder):
    """Negative control."""
    found = run(
        """
        try:
            import jax
        except ImportError as error:
            print(error)
        """,
        folder,
    )
    assert found.startswith("jax is imported")


ASK = """
    import json
    import metaprior as mp

    prior = mp.load("prior")
    start = {"rate": 0.1, "depth": 3, "kind": "b"}
    mean, std = prior.condition([start], [0.5]).predict([start, {**start, "depth": 5}])
    optimizer = mp.Optimizer(prior, seed=3)
    asked = []
    for i in range(10):
        asked.append(optimizer.ask())
        optimizer.tell(asked[-1], None if i == 4 else (asked[-1]["depth"] - 4.0) ** 2)
    asked += optimizer.ask(2)
    asked.append(optimizer.ask(fixed={"kind": "c", "depth": 7}))
    rows = [{"rate": 0.01 * i, "depth": 2, "kind": "a"} for i in range(1, 9)]
    asked += mp.Optimizer(prior, candidates=rows, seed=0).ask(3)
    print(json.dumps([mean.tolist(), std.tolist(), asked, optimizer.trust, repr(prior)]))
"""


def test_prior_and_optimizer_work_without_jax_and_as_with_it(folder):
    """Load, condition, predict, failures, batches, fixed values and candidates; and the same
    questions bit for bit in another process that may import JAX."""
    without, again = run(ASK, folder), run(ASK, folder, blocked=False)
    assert without == again
    mean, std, asked, trust, _ = json.loads(without)
    assert np.isfinite([mean, std]).all() and 0.0 <= trust <= 1.0
    assert asked[12]["kind"] == "c" and asked[12]["depth"] == 7
    assert len({json.dumps(point) for point in asked}) == 16


def test_what_else_an_optimizer_says_needs_no_jax(folder):
    """Other acquisitions, whether to stop, what is expected, several objectives, files of runs."""
    found = run(
        """
        import metaprior as mp
        from metaprior.bo import LogExpectedImprovement, ThompsonSampling

        prior = mp.load("prior")
        for acquisition in (LogExpectedImprovement(), ThompsonSampling()):
            optimizer = mp.Optimizer(prior, acquisition=acquisition, seed=0)
            for value in (1.0, 0.5, 0.7):
                optimizer.tell(optimizer.ask(), value)
        print(0.0 < optimizer.stopping().probability < 1.0)
        print(0.0 <= optimizer.expectation(optimizer.best.x).chance <= 1.0)
        optimizer.save("optimizer.json")
        again = mp.Optimizer.load("optimizer.json", prior, acquisition=ThompsonSampling())
        print(again.ask() == optimizer.ask())
        priors = mp.Priors({"a": prior, "b": prior})
        several = mp.MultiOptimizer(priors, seed=0)
        for value in (1.0, 0.5):
            several.tell(several.ask(), {"a": value, "b": -value})
        print(len(several.ask(2)))
        """,
        folder,
    )
    assert found.split() == ["True", "True", "True", "2"]


def test_asking_with_the_defaults_imports_no_scipy(folder):
    """It would take longer to import than everything else that a first question needs."""
    loaded = """
        import sys
        import metaprior as mp

        optimizer = mp.Optimizer(mp.load("prior"), seed=0)
        optimizer.tell(optimizer.ask(), 1.0)
        optimizer.ask()
        print("scipy" in sys.modules)
        prior = optimizer.prior
        prior.condition([optimizer.best.x], [1.0]).cdf([optimizer.best.x], [1.0])
        print("scipy" in sys.modules)
        """
    # The second is the control: some questions do need it.
    assert run(loaded, folder).split() == ["False", "True"]


def test_priors_of_format_1_are_asked_without_jax(folder):
    old = ROOT / "tests" / "store" / "format_1"
    found = run(
        f"""
        from pathlib import Path
        import metaprior as mp

        names = [path.parent.name for path in sorted(Path({str(old)!r}).glob("*/prior.json"))]
        for name in names:
            mp.Optimizer(mp.load(Path({str(old)!r}) / name), seed=0).ask()
        print(*names)
        """,
        folder,
    )
    assert {"fpacoh_map", "learned", "vanilla_gp"} <= set(found.split())


def test_sampler_with_a_prior_works_without_jax(folder):
    found = run(
        """
        import optuna
        from metaprior.adapters.optuna import MetaPriorSampler

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(sampler=MetaPriorSampler("prior", seed=0))
        study.optimize(
            lambda t: t.suggest_float("rate", 1e-3, 1.0, log=True) * t.suggest_int("depth", 1, 8),
            n_trials=6,
        )
        print(len(study.trials))
        """,
        folder,
    )
    assert found == "6\n"


def test_commands_work_without_jax(folder):
    options = ["--run", "run.csv", "--prior", "prior"]
    asked = json.loads(run(["suggest", *options, "--json"], folder))
    assert set(asked["rows"][0]["point"]) == {"rate", "depth", "kind"}
    told = json.loads(run(["tell", "1.5", *options, "--json"], folder))
    assert told["told"]["value"] == 1.5
    assert json.loads(run(["status", *options, "--json"], folder))["observed"] == 1
    assert "Report: " in run(["report", "prior"], folder)
    assert (folder / "report.html").exists()


def test_lifelong_sequence_begins_without_jax(folder):
    space = '[rate]\\nkind = "real"\\nlow = 0.0\\nhigh = 1.0\\n'
    (folder.parent / "space.toml").write_text(space.replace("\\n", "\n"))
    begin = ["suggest", "--lifelong", "machine", "--space", "space.toml", "--run", "one", "--json"]
    assert len(json.loads(run(begin, folder))["rows"]) == 1


@pytest.mark.parametrize(
    "program",
    ["import metaprior as mp", "import metaprior as mp\nmp.Optimizer(mp.load('prior')).ask()"],
)
def test_import_and_ask_load_nothing_heavy(folder, program):
    show = "import sys, json\nprint(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    loaded = set(json.loads(run(f"{program}\n{show}", folder, blocked=False)))
    assert not loaded & HEAVY
    assert "metaprior" in loaded


def test_hosts_are_imported_on_first_use(folder):
    found = run(
        """
        import sys
        import metaprior.adapters

        print({name.split(".")[0] for name in sys.modules} & {"torch", "botorch", "sklearn"})
        """,
        folder,
    )
    assert found.strip() == "set()"


def test_regressor_with_a_prior_works_without_jax(folder):
    found = run(
        """
        import metaprior as mp
        from metaprior.adapters.sklearn import PriorRegressor

        points = [[0.1, 3, "b"], [0.5, 7, "a"], [0.9, 1, "c"]]
        regressor = PriorRegressor(mp.load("prior")).fit(points, [0.1, 0.2, 0.3])
        print(len(regressor.predict(points)))
        """,
        folder,
    )
    assert found.strip() == "3"


@pytest.mark.oracle
def test_botorch_model_of_a_prior_works_without_jax(folder):
    pytest.importorskip("botorch")
    found = run(
        """
        import torch
        import metaprior as mp
        from metaprior.adapters.botorch import UnitCube, model

        prior = mp.load("prior")
        points = [{"rate": 0.1, "depth": 3, "kind": "b"}, {"rate": 0.5, "depth": 7, "kind": "a"}]
        X = UnitCube(prior.space).tensor(points)
        found = model(prior, X, torch.tensor([[0.1], [0.3]], dtype=torch.float64))
        expected, _ = prior.condition(points, [0.1, 0.3]).predict(points)
        print(float((found.posterior(X).mean[:, 0] - torch.tensor(expected)).abs().max()) < 1e-9)
        """,
        folder,
    )
    assert found.strip() == "True"
