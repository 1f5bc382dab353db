"""Improvement under constraints: against formulas worked out with SciPy, and on a small run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float
from scipy.integrate import quad
from scipy.stats import norm

from metaprior.bo import ConstrainedImprovement, constrained_improvement
from metaprior.data import empty_run
from metaprior.methods import AbstractPosterior, Moments


class Line(AbstractPosterior):
    """A posterior whose mean is `slope * x` and whose variances are given."""

    slope: Float[Array, "*k"]
    function_variance: Float[Array, "*k"]

    def moments(self, x):
        return Moments(self.slope * x[0], self.function_variance, jnp.asarray(7.0))

    def log_density(self, x, y):
        raise NotImplementedError

    def cdf(self, x, y):
        raise NotImplementedError

    def covariance(self, x):
        raise NotImplementedError

    def sample(self, x, num, *, key):
        raise NotImplementedError

    def path(self, anchors, *, key):
        raise NotImplementedError


OBJECTIVE = Line(jnp.asarray(2.0), jnp.asarray(0.25))
CONSTRAINTS = Line(jnp.array([1.0, -3.0]), jnp.array([0.04, 4.0]))


def score_at(x, best):
    acquisition = ConstrainedImprovement(CONSTRAINTS, jnp.asarray(best))
    score = acquisition.score(OBJECTIVE, empty_run(16, 1), jnp.zeros((1, 1)), key=jax.random.key(0))
    return float(jax.jit(score)(jnp.array([x])))


def probability(x):
    """Of both constraints being at most 0: means x and -3x, deviations 0.2 and 2."""
    return norm.cdf(-x / 0.2) * norm.cdf(3 * x / 2.0)


@pytest.mark.parametrize("x", [-0.4, 0.1, 0.6])
@pytest.mark.parametrize("best", [-1.0, 0.5])
def test_improvement_times_probability(x, best):
    improvement, _ = quad(lambda f: (f - best) * norm.pdf(f, 2 * x, 0.5), best, best + 12)
    assert score_at(x, best) == pytest.approx(np.log(improvement * probability(x)), rel=1e-6)


@pytest.mark.parametrize("x", [-0.4, 0.6])
def test_before_anything_feasible_only_the_probability_counts(x):
    assert score_at(x, -np.inf) == pytest.approx(np.log(probability(x)))


def test_far_into_the_forbidden_the_score_is_finite_and_points_back():
    def score(x):
        return ConstrainedImprovement(CONSTRAINTS, jnp.asarray(0.0)).log_feasibility(x)

    value, slope = jax.jit(jax.value_and_grad(score))(jnp.array([40.0]))
    assert np.isfinite(value) and slope[0] < 0


def test_what_a_run_has_shown():
    x = np.linspace(0.0, 1.0, 9)[:, None]
    y = x[:, 0]
    broken_right = x[:, 0] - 0.55
    broken_left = 0.2 - x[:, 0]
    broken_left[4] = np.nan  # not reported: no reason to call the point infeasible
    acquisition = constrained_improvement(x, y, np.stack([broken_right, broken_left], axis=1))
    assert float(acquisition.best) == 0.5
    chances = [float(jnp.exp(acquisition.log_feasibility(jnp.array([p])))) for p in (0.1, 0.4, 0.9)]
    assert chances[1] > 0.9 and max(chances[0], chances[2]) < 0.1


def test_a_run_without_a_feasible_point():
    x = np.array([[0.1], [0.9]])
    acquisition = constrained_improvement(x, np.array([1.0, 2.0]), np.array([[1.0], [0.2]]))
    assert float(acquisition.best) == -np.inf
