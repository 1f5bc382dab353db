"""Scores of compiled policies against hand arithmetic."""

import math

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from metaprior.data import empty_run, run_of
from metaprior.lab.policies import (
    CompiledConfidenceBound,
    CompiledLatentBound,
    CompiledRestlessBound,
)
from metaprior.methods import Moments
from tests.moments_only import MomentsOnly

KEY = jr.key(0)


class Line(MomentsOnly):
    """Mean $3 x_0$, everywhere the same variances: numbers to work with by hand."""

    def moments(self, x):
        return Moments(3.0 * x[0], jnp.asarray(0.25), jnp.asarray(2.0))


ANCHORS = jnp.array([[0.1], [0.4], [0.2]])
RUN = run_of(np.array([[0.3], [0.6], [0.9]]), np.array([0.4, 1.5, -2.0]))


def test_compiled_confidence_bound_by_hand():
    """At x = 0.5: mean 1.5, variance of an observation 0.25 + 2 = 2.25, so 1.5 + 4 * 1.5."""
    score = CompiledConfidenceBound(beta=4.0).score(Line(), RUN, ANCHORS, key=KEY)
    assert score(jnp.array([0.5])) == pytest.approx(7.5, rel=1e-12)


def test_compiled_latent_bound_leaves_the_noise_of_observations_out():
    """At x = 0.5: mean 1.5, variance of the function 0.25, so 1.5 + 4 * 0.5."""
    score = CompiledLatentBound(beta=4.0).score(Line(), RUN, ANCHORS, key=KEY)
    assert score(jnp.array([0.5])) == pytest.approx(3.5, rel=1e-12)


# Half a reach, a reach and two reaches from the nearest query: how much of the noise is news.
NEWS = {0.05: -math.expm1(-0.125), 0.1: -math.expm1(-0.5), 0.2: -math.expm1(-2.0)}


def std_at(distance):
    """Variance of the function 0.25, of the noise 2."""
    return math.sqrt(0.25 + 2.0 * NEWS[distance])


@pytest.mark.parametrize(
    "best, count, beta",
    [(1.5, 3, 2.0), (30.0, 3, 1.2 * 29.7 / std_at(0.2)), (30.0, 2, 2.0)],
)
def test_compiled_restless_bound_by_hand(best, count, beta):
    """Where hope is left, and in every other query, the factor is that of the plain bound. With a
    best of 30 and no margin, the anchor 0.1, mean 0.3 and 0.2 from a query, needs 29.7 deviations,
    and the others, 0.1 from one, more; 1.2 times that is the new factor."""
    y = np.array([best, 0.0, -2.0])[:count]
    run = run_of(np.array([[0.3], [0.6], [0.9]])[:count], y)
    score = CompiledRestlessBound(2.0, tolerance=0.0).score(Line(), run, ANCHORS, key=KEY)
    assert score(jnp.array([0.5])) == pytest.approx(1.5 + beta * std_at(0.1), rel=1e-12)
    assert score(jnp.array([0.55])) == pytest.approx(1.65 + beta * std_at(0.05), rel=1e-12)


def test_compiled_restless_bound_sees_no_noise_where_it_has_asked():
    score = CompiledRestlessBound(2.0).score(Line(), RUN, ANCHORS, key=KEY)
    assert score(jnp.array([0.6])) == pytest.approx(3.0 * 0.6 + 2.0 * 0.5, rel=1e-12)


def test_compiled_acquisition_has_a_slope_where_nothing_is_uncertain():
    """A posterior without any variance at a query: the search must not meet infinite slopes."""

    class Certain(Line):
        def moments(self, x):
            return Moments(3.0 * x[0], jnp.zeros(()), jnp.zeros(()))

    score = CompiledRestlessBound().score(Certain(), RUN, ANCHORS, key=KEY)
    value, slope = jax.value_and_grad(score)(jnp.array([0.6]))
    assert jnp.isfinite(value) and jnp.isfinite(slope).all()


def test_compiled_restless_bound_without_data_is_the_confidence_bound():
    score = CompiledRestlessBound(2.0).score(Line(), empty_run(4, 1), ANCHORS, key=KEY)
    assert score(jnp.array([0.5])) == pytest.approx(4.5, rel=1e-12)
