"""What is expected of a query and of the rest of a run: by hand, and by tasks with known optima."""

import math
from dataclasses import replace

import numpy as np
import pytest

import metaprior as mp
from metaprior.belief import Left
from metaprior.bo import StoppingHint
from metaprior.bo._outlook import hint_of
from metaprior.findings import Findings, StoppingCalibration


@pytest.fixture(scope="module")
def prior(hill_space, hill_runs):
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space)
    return mp.learn(tasks, method=mp.methods.FixedGP())


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_expectation_is_that_of_the_posterior(hill_space, hill_runs, direction):
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space, direction=direction)
    prior = mp.learn(tasks, method=mp.methods.FixedGP())
    optimizer = mp.Optimizer(prior, seed=0)
    query = {"x": 0.25, "z": 5.5}
    assert optimizer.expectation(query).chance is None
    optimizer.tell({"x": 0.0, "z": 5.0}, 1.5)
    optimizer.ask()  # what is under way is no evidence
    found = optimizer.expectation(query)
    mean, std = prior.condition([{"x": 0.0, "z": 5.0}], [1.5]).predict([query])
    np.testing.assert_allclose([found.value, found.std], [mean[0], std[0]], rtol=1e-9)
    sign = 1.0 if direction == "maximize" else -1.0
    beaten = 0.5 * math.erfc(sign * (1.5 - mean[0]) / (std[0] * math.sqrt(2.0)))
    assert found.chance == pytest.approx(beaten, rel=1e-9)


def test_hint_counts_functions_whose_optimum_is_near():
    regret, gap = np.array([0.0, 0.1, 1.0, 0.4]), np.array([1.0, 4.0, 10.0, 4.0])
    hint = hint_of(Left(regret, gap), None)
    # Within 0.05, 0.2, 0.5 and 0.2: two of four, and one success and failure more.
    assert hint.probability == pytest.approx(3 / 6)
    assert hint.improvement_left == pytest.approx(0.375)
    assert hint.tolerance == pytest.approx(0.05 * 4.75)
    assert hint_of(Left(regret, gap), 0.5).probability == pytest.approx(4 / 6)
    assert not hint.is_done() and hint.is_done(0.4)


def test_stopping_falls_as_the_run_goes_on_and_knows_its_tolerance(hill_space, hill_runs):
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space)
    smooth = mp.learn(tasks, method=mp.methods.FixedGP(lengthscale=0.7))
    optimizer = mp.Optimizer(smooth, seed=0)
    assert optimizer.stopping() is None
    hints = []
    for _ in range(8):
        point = optimizer.ask()
        distance = ((point["x"] - 0.3) / 0.8) ** 2 + ((point["z"] - 6.0) / 4.0) ** 2
        optimizer.tell(point, 2.0 - distance)
        hints.append(optimizer.stopping())
    assert hints[-1].improvement_left < 0.5 * hints[0].improvement_left
    assert hints[-1].probability > hints[0].probability
    assert optimizer.stopping() == optimizer.stopping()
    wide, narrow = optimizer.stopping(tolerance=1.0), optimizer.stopping(tolerance=1e-9)
    assert wide is not None and narrow is not None
    assert wide.probability > 0.95 > narrow.probability and wide.is_done()
    with pytest.raises(ValueError, match="The tolerance is -1.0; give a positive number"):
        optimizer.stopping(tolerance=-1.0)


def test_stopping_is_corrected_by_what_happened_in_held_out_runs(prior):
    def hint_with(findings: Findings | None) -> StoppingHint:
        optimizer = mp.Optimizer(replace(prior, findings=findings), seed=0)
        optimizer.tell({"x": 0.0, "z": 5.0}, 1.5)
        hint = optimizer.stopping()
        assert hint is not None
        return hint

    plain = hint_with(None)
    assert not plain.calibrated and hint_with(Findings("Not calibrated.")) == plain
    curve = StoppingCalibration((0.0, 1.0), (0.2, 0.6), 60, 10)
    corrected = hint_with(Findings("Calibrated.", stopping=curve))
    expected = 0.2 + 0.4 * plain.probability
    assert corrected.probability == pytest.approx(expected) and corrected.calibrated
    assert corrected[:2] == plain[:2]


def test_stopping_of_a_finite_set_ends_when_all_is_known(prior):
    rows = [{"x": x, "z": z} for x in (-0.5, 0.0, 0.5) for z in (2.0, 5.0, 8.0)]
    optimizer = mp.Optimizer(prior, candidates=rows, seed=0)
    for _ in rows:
        point = optimizer.ask()
        optimizer.tell(point, -((point["x"] - 0.5) ** 2) - (point["z"] - 5.0) ** 2)
    hint = optimizer.stopping(tolerance=0.5)
    assert hint is not None and hint.is_done()
