"""`learn`: what it keeps, what it refuses, what it survives, and what it leaves alone."""

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
from metaprior.methods import FixedGP, Guarded


def leaves(prior):
    return jax.tree.leaves(eqx.filter(prior.surrogate, eqx.is_array))


def test_history_and_description(hill_prior, quick_fpacoh):
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


def test_the_same_seed_gives_the_same_prior_bit_for_bit(
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
    # Progress comes in pieces that make up the history.
    assert [(r.step, r.num_steps) for r in reports] == [(100, 150), (150, 150)]
    pieces = np.concatenate([r.terms["fit"] for r in reports])
    np.testing.assert_array_equal(pieces, again.history["fit"])


def test_a_method_without_training_has_no_history(hill_space, hill_runs):
    prior = mp.learn(mp.Tasks.from_runs(hill_runs, space=hill_space), method=FixedGP())
    assert prior.history == {} and prior.direction == "maximize"


def test_one_task_is_too_few(hill_space, hill_runs):
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
def test_awkward_runs_break_nothing(hill_space, hill_runs, quick_fpacoh, kind):
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
    """What a program sees in which nobody has touched JAX's settings or checks types."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_callers_precision_is_left_alone(as_users_run_it):
    assert as_users_run_it["seen"] == [[False, "float32"]] * 4
    assert as_users_run_it["dtypes"] == ["float64", "float64"]
    # Numbers, and the switches of the effects.
    assert as_users_run_it["leaves"] == ["bool", "float64"]
    assert as_users_run_it["seed"] == 4


def test_wrong_types_are_named_in_one_sentence(as_users_run_it):
    for error, words in zip(
        as_users_run_it["errors"],
        [
            ("TypeError", "`tasks` is a list", "Tasks.from_runs"),
            ("TypeError", "`tasks` is a NoneType", "Tasks.from_runs"),
            ("ValueError", "1.5", "whole number"),
            ("ValueError", "'much'", "None for a failure"),
            ("ValueError", "[1.0, 2.0]", "None for a failure"),
        ],
        strict=True,
    ):
        assert error is not None and all(word in error for word in words), error
        assert error.endswith(".") and "\n" not in error


def test_nothing_heavy_is_imported_on_the_way(as_users_run_it):
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
        env={**os.environ, "JAX_COMPILATION_CACHE_DIR": ""},
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "choosing a configuration\n"
    program.send_signal(signal.SIGINT)
    return program


@pytest.mark.slow
def test_ctrl_c_ends_with_a_prior_that_saves_loads_and_suggests(tmp_path):
    program = started(tmp_path / "prior")
    out, err = program.communicate(timeout=300)
    assert program.returncode == 0, err
    assert out.splitlines()[-2:] == ["learned True", "point True True"]
    assert "KeyboardInterrupt" not in err


@pytest.mark.slow
def test_a_second_ctrl_c_ends_the_program(tmp_path):
    program = started(tmp_path / "prior")
    # Python hears two signals as one if both come while code is compiled: so, like a user, again.
    while program.poll() is None:
        time.sleep(0.5)
        program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=300)
    assert program.returncode != 0 and "KeyboardInterrupt" in err
    assert "learned" not in out and not (tmp_path / "prior").exists()


@pytest.mark.slow
def test_from_past_runs_to_the_next_one_without_a_method(hill_space, hill_runs, tmp_path):
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space)
    prior = mp.learn(tasks, budget="fast", seed=0)
    assert isinstance(prior.method, Guarded)
    assert prior.findings is not None and prior.findings.held_out is not None
    assert prior.findings.budget == "fast" and not prior.findings.interrupted
    learned, fitted = prior.findings.held_out.learned, prior.findings.held_out.fitted
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
