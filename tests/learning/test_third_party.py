"""Methods of other packages: raced by `learn`, saved, and loaded by name in another process."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metaprior as mp
from metaprior.learning import Budget, _budget
from metaprior.methods import FixedGP, FPacohMap, Guarded, register
from tests.learning.third_party import Waves

SPACE = mp.Space(x=mp.Real(0.0, 1.0))
PERIOD = 0.2
GRID = np.linspace(0.0, 1.0, 14)

LOAD_AND_ASK = """
    import json, sys
    {imports}
    import metaprior as mp

    try:
        prior = mp.load(sys.argv[1])
    except mp.PriorFileError as error:
        print(json.dumps({{"error": str(error)}}))
    else:
        mean, std = prior.condition([[0.1], [0.25]], [0.5, -0.5]).predict([[0.3], [0.7]])
        point = mp.Optimizer(prior, candidates=[[0.1], [0.5], [0.9]], seed=0).ask()
        found = {{"class": prior.method.summary(), "mean": mean.tolist(), "asked": point["x"]}}
        print(json.dumps(found))
"""


def in_a_new_process(folder: Path, imports: str = "", *, paths: tuple = ()) -> dict:
    """What a program finds that imports this, loads the prior in `folder` and asks it."""
    root = Path(__file__).parents[2]
    where = [*paths, root / "src", root, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    program = textwrap.dedent(LOAD_AND_ASK).format(imports=imports)
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(each) for each in where if each)},
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def saved(tmp_path):
    """A prior of the method with the numbers it starts with."""
    method = Waves(period=0.5)
    trained = mp.methods.TrainedContents(method, method.blank_surrogate(1))
    return mp.Prior(SPACE, "maximize", trained).save(tmp_path / "prior")


def test_load_finds_a_registered_method_in_a_new_process(saved):
    found = in_a_new_process(saved, "import tests.learning.third_party")
    here = mp.load(saved).condition([[0.1], [0.25]], [0.5, -0.5]).predict([[0.3], [0.7]])[0]
    assert found["class"] == "Waves(period=0.5)" and found["asked"] in (0.1, 0.5, 0.9)
    np.testing.assert_allclose(found["mean"], here, rtol=1e-9)


def test_load_names_the_missing_import_of_an_unregistered_method(saved):
    assert in_a_new_process(saved)["error"] == (
        f"Cannot load the prior in {saved}: there is no method called 'Waves' in this process; if "
        "it is one of your own, first import the module that calls `metaprior.methods.register` "
        "on it."
    )


def distribution(folder: Path, value: str) -> Path:
    """A folder with what an installer leaves of a package that declares a method."""
    made = folder / "site"
    (made / "waves-1.0.dist-info").mkdir(parents=True)
    (made / "waves-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: waves\nVersion: 1.0\n"
    )
    (made / "waves-1.0.dist-info" / "entry_points.txt").write_text(
        f"[metaprior.methods]\nWaves = {value}\n"
    )
    return made


def test_load_finds_a_method_by_its_entry_point(saved, tmp_path):
    site = distribution(tmp_path, "tests.learning.third_party:Waves")
    assert in_a_new_process(saved, paths=(site,))["class"] == "Waves(period=0.5)"


def test_load_names_an_entry_point_that_cannot_be_loaded(saved, tmp_path):
    error = in_a_new_process(saved, paths=(distribution(tmp_path, "no_such_module:Waves"),))[
        "error"
    ]
    assert "the entry point 'no_such_module:Waves' of the method 'Waves' cannot be loaded" in error
    assert "damaged" not in error and error.endswith(".") and "\n" not in error


def test_register_refuses_a_name_that_is_taken_and_what_is_no_method():
    assert register(Waves) is Waves
    with pytest.raises(ValueError, match="already a method called 'FixedGP'"):
        register(type("FixedGP", (FixedGP,), {}))
    other = type("Waves", (FixedGP,), {"__module__": "elsewhere"})
    with pytest.raises(ValueError, match="already a method called 'Waves'; rename the class"):
        register(other)
    plain: Any = getattr(register, "__wrapped__", register)  # without the tests' runtime checks
    for wrong in (Waves(), int, "Waves"):
        with pytest.raises(TypeError, match="`register` received .*; give a class"):
            plain(wrong)


@pytest.fixture
def waves():
    """Runs on one grid: waves of one period, each with a phase of its own."""
    rng = np.random.default_rng(0)
    runs = [(GRID[:, None], np.sin(2 * np.pi * (GRID / PERIOD + rng.uniform()))) for _ in range(6)]
    return mp.Tasks.from_runs(runs, space=SPACE)


@pytest.mark.slow
def test_learn_races_a_third_party_method_which_wins_on_its_own_family(
    waves, monkeypatch, tmp_path
):
    """And is saved, loaded in a new process, and asked."""
    monkeypatch.setitem(_budget.BUDGETS, "tiny", Budget("tiny", 1, (20, 60), (20,), 2, 1))
    # The method is told the period, in the standardised units in which methods work.
    mine = Waves(period=PERIOD / GRID.std())
    told = []
    prior = mp.learn(
        waves,
        candidates=[FPacohMap(), mine, Waves(period=10.0), FPacohMap(kappa=0.5)],
        budget="tiny",
        on_progress=told.append,
    )
    assert isinstance(prior.method, Guarded)
    chosen = prior.method.base
    assert isinstance(chosen, Waves) and chosen.period == mine.period
    assert chosen.num_steps in (20, 60)
    assert prior.findings is not None and prior.findings.tried == 4
    assert prior.history["fit"].shape == (chosen.num_steps,)
    # Two lanes, of two configurations each.
    assert [each.trying for each in told[:4]] == [
        "2 configurations, 20 steps",
        "1 configuration, 60 steps",
    ] * 2
    assert told[-1].trying == chosen.summary() and "Waves(period=" in told[-1].trying
    saved = prior.save(tmp_path / "prior")
    found = in_a_new_process(saved, "import tests.learning.third_party")
    here = prior.condition([[0.1], [0.25]], [0.5, -0.5]).predict([[0.3], [0.7]])[0]
    np.testing.assert_allclose(found["mean"], here, rtol=1e-6)
    assert found["asked"] in (0.1, 0.5, 0.9)
