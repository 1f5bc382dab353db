"""Improvement under constraints: against formulas worked out with SciPy, and on a small run."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from metaprior.belief import (
    AbstractBelief,
    AbstractMembers,
    MemberMoments,
    MemberSlopes,
    equal_group,
)
from metaprior.bo import ConstrainedImprovement, constrained_improvement


class Line(AbstractBelief):
    """A belief whose mean is `slope * x` and whose function variance is given."""

    def __init__(self, slope, function_variance):
        self.slope, self.function_variance = slope, function_variance

    def groups(self, x, y):
        return (equal_group(LineMember(self)),)


class LineMember(AbstractMembers):
    def __init__(self, line):
        self.line = line

    @property
    def count(self):
        return 1

    def moments(self, x):
        variance = np.full((1, len(x)), self.line.function_variance)
        return MemberMoments(self.line.slope * x[None, :, 0], variance, np.array([7.0]))

    def slopes(self, x):
        mean = np.full((1, *x.shape), self.line.slope)
        return MemberSlopes(self.moments(x), mean, np.zeros_like(mean))

    def joint(self, index, x):
        raise NotImplementedError

    def path(self, index, anchors, rng):
        raise NotImplementedError


def line(slope, function_variance):
    return Line(slope, function_variance).condition(np.zeros((0, 1)), [])


OBJECTIVE = line(2.0, 0.25)
CONSTRAINTS = (line(1.0, 0.04), line(-3.0, 4.0))


def score_of(acquisition):
    return acquisition.score(OBJECTIVE, np.zeros((1, 1)), np.random.default_rng(0)).score


def score_at(x, best):
    (value,) = score_of(ConstrainedImprovement(CONSTRAINTS, best)).values(np.array([[x]]))
    return float(value)


def probability(x):
    """Of both constraints being at most 0: means x and -3x, deviations 0.2 and 2."""
    return norm.cdf(-x / 0.2) * norm.cdf(3 * x / 2.0)


@pytest.mark.parametrize("x", [-0.4, 0.1, 0.6])
@pytest.mark.parametrize("best", [-1.0, 0.5])
def test_constrained_improvement_is_improvement_times_probability(x, best):
    improvement, _ = quad(lambda f: (f - best) * norm.pdf(f, 2 * x, 0.5), best, best + 12)
    assert score_at(x, best) == pytest.approx(np.log(improvement * probability(x)), rel=1e-6)


@pytest.mark.parametrize("x", [-0.4, 0.6])
def test_constrained_improvement_is_the_probability_before_anything_feasible(x):
    assert score_at(x, None) == pytest.approx(np.log(probability(x)))


def test_constrained_improvement_far_into_the_infeasible_is_finite_and_points_back():
    score = score_of(ConstrainedImprovement(CONSTRAINTS, None))
    value, slope = score.gradients(np.array([[40.0]]))
    assert np.isfinite(value[0]) and slope[0, 0] < 0


def test_constrained_improvement_takes_what_a_run_has_shown():
    x = np.linspace(0.0, 1.0, 9)[:, None]
    y = x[:, 0]
    broken_right = x[:, 0] - 0.55
    broken_left = 0.2 - x[:, 0]
    broken_left[4] = np.nan  # not reported: no reason to call the point infeasible
    acquisition = constrained_improvement(x, y, np.stack([broken_right, broken_left], axis=1))
    assert acquisition.best == 0.5
    feasibility = score_of(ConstrainedImprovement(acquisition.constraints, None))
    chances = np.exp(feasibility.values(np.array([[0.1], [0.4], [0.9]])))
    assert chances[1] > 0.9 and max(chances[0], chances[2]) < 0.1


def test_constrained_improvement_of_a_run_without_a_feasible_point():
    x = np.array([[0.1], [0.9]])
    acquisition = constrained_improvement(x, np.array([1.0, 2.0]), np.array([[1.0], [0.2]]))
    assert acquisition.best is None
