"""`learn`: what it returns, refuses and survives, and what it leaves alone."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import equinox as eqx
import jax
import numpy as np
import pytest

import metaprior as mp
from metaprior.methods import FixedGP, FPacohMap, Weighed


def leaves(prior):
    return jax.tree.leaves(eqx.filter(prior.surrogate, eqx.is_array))


def test_learn_by_method_keeps_history_and_description(hill_prior, quick_fpacoh):
    assert set(hill_prior.history) == {"fit", "complexity"}
    for terms in hill_prior.history.values():
        assert terms.shape == (quick_fpacoh.num_steps,) and np.isfinite(terms).all()
    fit = hill_prior.history["fit"]
    assert fit[-20:].mean() < fit[:20].mean() - 0.5
    assert (hill_prior.history["complexity"] > 0).all()
    assert hill_prior.trained_on == {
        "tasks": 6,
        "observations": 36,
        "shortest run": 1,
        "longest run": 8,
        "seed": 0,
    }
    assert hill_prior.method is quick_fpacoh


def test_learn_by_method_gives_the_same_prior_for_the_same_seed_bit_for_bit(
    hill_prior, hill_space, hill_runs, quick_fpacoh
):
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space)
    reports = []
    again = mp.learn(tasks, method=quick_fpacoh, seed=0, on_progress=reports.append)
    for ours, theirs in zip(leaves(again), leaves(hill_prior), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(again.history["fit"], hill_prior.history["fit"])
    other = mp.learn(tasks, method=quick_fpacoh, seed=1)
    assert not np.array_equal(other.history["fit"], hill_prior.history["fit"])
    assert reports == [
        mp.LearnProgress(stage, fraction, quick_fpacoh.summary(), None)
        for stage, fraction in (
            ("compiling, and training", 0.0),
            ("training", 100 / 150),
            ("training", 1.0),
        )
    ]
    assert quick_fpacoh.summary() == "FPacohMap(learning_rate=0.01, num_steps=150)"


def test_learn_by_a_method_without_training_has_no_history(hill_space, hill_runs):
    tasks, reports = mp.Tasks.from_runs(hill_runs, space=hill_space), []
    prior = mp.learn(tasks, method=FixedGP(), on_progress=reports.append)
    assert reports == [mp.LearnProgress("training", 0.0, "FixedGP()", None)]
    assert prior.history == {} and prior.direction == "maximize"


def test_learn_refuses_a_single_task(hill_space, hill_runs):
    tasks = mp.Tasks.from_runs(hill_runs[:1], space=hill_space)
    with pytest.raises(ValueError, match="^Learning a prior needs at least 2 tasks, received 1"):
        mp.learn(tasks)


def spoil(runs, kind):
    """The runs with something awkward in them; lengths stay, so nothing is compiled anew."""
    spoilt = [(points.copy(), values.copy()) for points, values in runs]
    for points, values in spoilt:
        if kind == "constant values":
            values[:] = 7.0
        elif kind == "constant column":
            points[:, 1] = 4.0
        elif kind == "one place":
            points[:] = [0.5, 2.0]
        elif kind == "repeated inputs":
            points[1::2] = points[: len(points) - 1 : 2]
    if kind == "outlier":
        spoilt[4][1][3] = 1e6
    if kind == "large offset":
        spoilt = [(points, 1e9 + values) for points, values in spoilt]
    return spoilt


@pytest.mark.parametrize(
    "kind",
    [
        "constant values",
        "constant column",
        "one place",
        "repeated inputs",
        "outlier",
        "large offset",
    ],
)
def test_learn_by_method_survives_awkward_runs(hill_space, hill_runs, quick_fpacoh, kind):
    """The first run has a single point in all of them."""
    runs = spoil(hill_runs, kind)
    prior = mp.learn(mp.Tasks.from_runs(runs, space=hill_space), method=quick_fpacoh, seed=0)
    for terms in prior.history.values():
        assert np.isfinite(terms).all()
    corners = [[-1.0, 0.0], [1.0, 10.0], [0.5, 2.0]]
    for x, y in (([], []), runs[0], runs[4]):
        mean, std = prior.condition(x, y).predict(corners)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all() and (std > 0).all()


def test_learn_with_default_arguments_saves_loads_and_asks(tmp_path):
    """The real thing at its smallest: nothing is replaced, only the budget is the smallest one."""
    rng = np.random.default_rng(0)
    runs = [
        (x, -((x[:, 0] - top) ** 2))
        for x, top in zip(rng.uniform(size=(3, 6, 1)), (0.5, 0.6, 0.7), strict=True)
    ]
    told = []
    prior = mp.learn(
        mp.Tasks.from_runs(runs, space=mp.Space(x=mp.Real(0.0, 1.0))),
        budget="fast",
        on_progress=told.append,
    )
    assert isinstance(prior.method, Weighed) and isinstance(prior.method.base, FPacohMap)
    findings = prior.findings
    assert findings is not None and findings.held_out is not None
    assert not findings.interrupted and findings.tried == 8 and findings.held_out.tasks == 3
    steps = prior.method.base.num_steps
    assert steps in (20, 50, 100, 200, 400)
    assert {name: terms.shape for name, terms in prior.history.items()} == {
        "fit": (steps,),
        "complexity": (steps,),
    }
    assert np.isfinite(prior.history["fit"]).all()
    assert {type(each) for each in told} == {mp.LearnProgress}
    assert told[-1].trying == prior.method.base.summary()
    loaded = mp.load(prior.save(tmp_path / "prior"))
    np.testing.assert_array_equal(loaded.history["fit"], prior.history["fit"])
    np.testing.assert_array_equal(
        loaded.condition(*runs[0]).predict([[0.2], [0.9]]),
        prior.condition(*runs[0]).predict([[0.2], [0.9]]),
    )
    optimizer = mp.Optimizer(loaded, seed=0)
    for _ in range(2):
        point = optimizer.ask()
        assert 0.0 <= point["x"] <= 1.0
        optimizer.tell(point, -((point["x"] - 0.55) ** 2))
    assert optimizer.best is not None and optimizer.best.value > -0.1


SCRIPT = """
    import json, sys
    import jax, jax.numpy as jnp, numpy as np
    import metaprior as mp

    def flag():
        return [bool(jax.config.jax_enable_x64), str(jnp.ones(1).dtype)]

    seen = [flag()]
    space = mp.Space(x=mp.Real(0.0, 1.0))
    rng = np.random.default_rng(0)
    runs = [(rng.uniform(size=(4, 1)), rng.normal(size=4)) for _ in range(3)]
    tasks = mp.Tasks.from_runs(runs, space=space)
    prior = mp.learn(tasks, method=mp.methods.FPacohMap(num_steps=2), seed=np.int64(4))
    seen.append(flag())
    optimizer = mp.Optimizer(prior, candidates=[[0.1], [0.5], [0.9]])
    optimizer.tell(optimizer.ask(), 1.0)
    seen.append(flag())
    mean, std = prior.condition(*runs[0]).predict([[0.3]])
    seen.append(flag())

    errors = []
    for call in (
        lambda: mp.learn(runs),
        lambda: mp.learn(None),
        lambda: mp.learn(tasks, candidates=[]),
        lambda: mp.learn(tasks, candidates=[mp.methods.FixedGP()]),
        lambda: mp.learn(tasks, method=prior.method, candidates=[prior.method]),
        lambda: optimizer.ask(1.5),
        lambda: optimizer.tell({"x": 0.1}, "much"),
        lambda: optimizer.tell({"x": 0.1}, [1.0, 2.0]),
    ):
        try:
            call()
            errors.append(None)
        except (TypeError, ValueError) as error:
            errors.append(f"{type(error).__name__}: {error}")
    leaves = jax.tree.leaves(prior.surrogate)
    heavy = {"torch", "optuna", "pandas", "matplotlib", "sklearn"} & set(sys.modules)
    json.dump(
        {
            "seen": seen,
            "errors": errors,
            "heavy": sorted(heavy),
            "dtypes": [str(mean.dtype), str(std.dtype)],
            "leaves": sorted({str(leaf.dtype) for leaf in leaves if hasattr(leaf, "dtype")}),
            "seed": prior.trained_on["seed"],
        },
        sys.stdout,
    )
"""


@pytest.fixture(scope="module")
def as_users_run_it():
    """What a program sees that changes no JAX settings and checks no types."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_learn_and_optimizer_leave_the_callers_precision_alone(as_users_run_it):
    assert as_users_run_it["seen"] == [[False, "float32"]] * 4
    assert as_users_run_it["dtypes"] == ["float64", "float64"]
    # Numbers, and the switches of the effects.
    assert as_users_run_it["leaves"] == ["bool", "float64"]
    assert as_users_run_it["seed"] == 4


def test_learn_and_optimizer_name_wrong_types_in_one_sentence(as_users_run_it):
    for error, words in zip(
        as_users_run_it["errors"],
        [
            ("TypeError", "`tasks` is a list", "Tasks.from_runs"),
            ("TypeError", "`tasks` is a NoneType", "Tasks.from_runs"),
            ("ValueError", "`candidates` is empty", "at least one method"),
            ("TypeError", "candidates[0] is FixedGP()", "not trained by gradients"),
            ("ValueError", "Both `method` and `candidates` are given", "give `method`"),
            ("ValueError", "1.5", "whole number"),
            ("ValueError", "'much'", "None for a failure"),
            ("ValueError", "[1.0, 2.0]", "None for a failure"),
        ],
        strict=True,
    ):
        assert error is not None and all(word in error for word in words), error
        assert error.endswith(".") and "\n" not in error


def test_learn_and_optimizer_import_nothing_heavy(as_users_run_it):
    assert as_users_run_it["heavy"] == []


INTERRUPTED = """
    import sys
    import numpy as np
    import metaprior as mp

    space = mp.Space(x=mp.Real(0.0, 1.0))
    rng = np.random.default_rng(0)
    points, shifts = rng.uniform(size=(6, 8, 1)), rng.normal(size=6)
    runs = [(x, np.sin(6 * x[:, 0] + shift)) for x, shift in zip(points, shifts)]
    told = []

    def tell(progress):
        told.append(progress)
        print(progress.stage, flush=True)

    prior = mp.learn(mp.Tasks.from_runs(runs, space=space), budget="thorough", on_progress=tell)
    print("learned", prior.findings.interrupted, flush=True)
    prior.save(sys.argv[1])
    loaded = mp.load(sys.argv[1])
    point = mp.Optimizer(loaded, seed=0).ask()
    print("point", 0.0 <= point["x"] <= 1.0, loaded.findings.interrupted, flush=True)
"""


def started(folder):
    """A program that learns for minutes and has just said what it is doing."""
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Without code compiled before, or there would be nothing to interrupt.
        env={**os.environ, "JAX_COMPILATION_CACHE_DIR": "", "METAPRIOR_CACHE": "off"},
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "compiling, and choosing a configuration\n"
    program.send_signal(signal.SIGINT)
    return program


@pytest.mark.slow
def test_learn_after_ctrl_c_returns_a_prior_that_saves_loads_and_suggests(tmp_path):
    program = started(tmp_path / "prior")
    out, err = program.communicate(timeout=300)
    assert program.returncode == 0, err
    assert out.splitlines()[-2:] == ["learned True", "point True True"]
    assert "KeyboardInterrupt" not in err


@pytest.mark.slow
def test_learn_ends_the_program_at_the_second_ctrl_c(tmp_path):
    program = started(tmp_path / "prior")
    # Python hears two signals as one if both come while code is compiled: so, like a user, again.
    while program.poll() is None:
        time.sleep(0.5)
        program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=300)
    # So Python ends on Ctrl-C; one more signal while it says so may cut its words short.
    assert program.returncode == -signal.SIGINT, err
    assert "learned" not in out and not (tmp_path / "prior").exists()


@pytest.mark.slow
def test_learn_finds_the_hill_of_a_new_run(hill_space, hill_runs, tmp_path):
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space)
    prior = mp.learn(tasks, budget="fast", seed=0)
    assert isinstance(prior.method, Weighed)
    assert prior.findings is not None and prior.findings.held_out is not None
    assert prior.findings.budget == "fast" and not prior.findings.interrupted
    learned, fitted = prior.findings.held_out.learned, prior.findings.held_out.baseline
    assert learned.log_likelihood is not None and fitted.log_likelihood is not None
    assert learned.log_likelihood > fitted.log_likelihood
    loaded = mp.load(prior.save(tmp_path / "prior"))
    for x, y in (([], []), hill_runs[4]):
        ours, theirs = (p.condition(x, y).predict(hill_runs[5][0]) for p in (prior, loaded))
        np.testing.assert_array_equal(ours, theirs)
    optimizer = mp.Optimizer(loaded, seed=0)
    start = optimizer.trust
    assert start is not None and 0.5 < start < 1.0
    for _ in range(4):
        point = optimizer.ask()
        distance = ((point["x"] - 0.3) / 0.8) ** 2 + ((point["z"] - 6.0) / 4.0) ** 2
        optimizer.tell(point, 2.0 - distance)
        assert optimizer.trust is not None and 0.0 < optimizer.trust < 1.0
    # A task like the past ones: the prior is trusted, and the hill is found.
    assert optimizer.trust is not None and optimizer.trust > 0.5
    assert optimizer.best is not None and optimizer.best.value > 1.8
