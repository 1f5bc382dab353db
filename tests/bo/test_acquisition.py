"""Scores against numerical integration, hand arithmetic, differences and direct sampling."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.spatial.distance import cdist

import metaprior as mp
from metaprior.belief import (
    AbstractBelief,
    AbstractMembers,
    MemberMoments,
    MemberSlopes,
    equal_group,
)
from metaprior.bo import (
    LogExpectedImprovement,
    RestlessConfidenceBound,
    ThompsonSampling,
    UpperConfidenceBound,
)
from metaprior.bo._acquisition import log_standard_improvement
from metaprior.methods import SelfStandardisedGP, TrainedContents


@dataclass(frozen=True)
class Line(AbstractBelief):
    """Mean $3 x_0$, everywhere the same variances: numbers to work with by hand."""

    function_variance: float = 0.25
    noise_variance: float = 2.0

    def groups(self, x, y):
        return (equal_group(LineMember(self)),)


@dataclass(frozen=True)
class LineMember(AbstractMembers):
    line: Line

    @property
    def count(self):
        return 1

    def moments(self, x):
        variance = np.full((1, len(x)), self.line.function_variance)
        return MemberMoments(3.0 * x[None, :, 0], variance, np.array([self.line.noise_variance]))

    def slopes(self, x):
        mean = np.full((1, *x.shape), 3.0)
        return MemberSlopes(self.moments(x), mean, np.zeros_like(mean))

    def joint(self, index, x):
        raise NotImplementedError

    def path(self, index, anchors, rng):
        raise NotImplementedError


ANCHORS = np.array([[0.1], [0.4], [0.2]])
X, Y = np.array([[0.3], [0.6], [0.9]]), np.array([0.4, 1.5, -2.0])
NOTHING = np.zeros((0, 1)), np.zeros(0)


def score_of(acquisition, x=X, y=Y, line=None):
    believed = (Line() if line is None else line).condition(x, y)
    return acquisition.score(believed, ANCHORS, np.random.default_rng(0)).score


def at(score, x):
    (value,) = score.values(np.array([[x]]))
    return float(value)


def log_improvement(u):
    return float(log_standard_improvement(np.array([u]))[0])


def slope(u):
    """Of `log_improvement`: with unit variance and best value 0, u is the mean 3 x."""
    _, found = score_of(
        LogExpectedImprovement(), np.array([[0.0]]), np.array([0.0]), Line(function_variance=1.0)
    ).gradients(np.array([[u / 3.0]]))
    return float(found[0, 0]) / 3.0


def improvement_integral(u, power):
    r"""$\int_0^\infty t^p e^{u t - t^2 / 2} dt$; with $p = 1$ and times $\varphi(u)$, it is $h$.

    From $h(u) = \int (z + u)_+ \varphi(z) dz$ with $z = t - u$. The integrand is scaled by its
    largest value's logarithm, here that at `peak`, so that nothing underflows.
    """
    peak = (u + np.sqrt(u**2 + 4 * power)) / 2
    top = power * np.log(peak) + u * peak - peak**2 / 2

    def scaled(t):
        return np.exp(power * np.log(t) + u * t - t**2 / 2 - top) if t > 0 else 0.0

    # The integrand has the width of the peak, or of a standard normal where that is smaller.
    width = min(peak, 1.0) if u < 0 else 1.0
    low, high = max(0.0, peak - 12 * width), peak + 60 * width
    value, _ = quad(scaled, low, high, points=[peak], epsabs=0, epsrel=1e-12, limit=200)
    return top + np.log(value)


def exact_log_improvement(u):
    return scipy.stats.norm.logpdf(u) + improvement_integral(u, 1)


@pytest.mark.parametrize("u", [-200.0, -40.0, -30.001, -29.999, -15.0, -3.0, -0.5, 0.0, 2.0, 9.0])
def test_log_improvement_matches_the_integral(u):
    np.testing.assert_allclose(log_improvement(u), exact_log_improvement(u), rtol=1e-9, atol=1e-9)
    # d ln h / du = -u + int t^2 e^{..} / int t e^{..}
    exact_slope = -u + np.exp(improvement_integral(u, 2) - improvement_integral(u, 1))
    np.testing.assert_allclose(slope(u), exact_slope, rtol=1e-7)


def test_log_improvement_test_can_fail():
    """Negative control: without the series there is nothing left of it in the far tail."""
    u = -40.0
    plain = scipy.stats.norm.pdf(u) + u * scipy.stats.norm.cdf(u)
    assert plain <= 0 or abs(np.log(plain) - exact_log_improvement(u)) > 1e-3
    assert np.isfinite(log_improvement(u)) and np.isfinite(slope(u))


@settings(deadline=None, max_examples=100)
@given(u=st.floats(-1e4, 30.0), gap=st.floats(1e-3, 10.0))
def test_log_improvement_grows_with_u(u, gap):
    assert log_improvement(u + gap) > log_improvement(u)
    assert np.isfinite(slope(u)) and slope(u) > 0


def test_upper_confidence_bound_by_hand():
    """At x = 0.5: mean 1.5, variance of an observation 0.25 + 2 = 2.25, so 1.5 + 4 * 1.5."""
    assert at(score_of(UpperConfidenceBound(beta=4.0)), 0.5) == pytest.approx(7.5, rel=1e-12)


# Half a reach, a reach and two reaches from the nearest query: how much of the noise is news.
NEWS = {0.05: -math.expm1(-0.125), 0.1: -math.expm1(-0.5), 0.2: -math.expm1(-2.0)}


def std_at(distance):
    """Variance of the function 0.25, of the noise 2."""
    return math.sqrt(0.25 + 2.0 * NEWS[distance])


@pytest.mark.parametrize(
    "best, count, beta",
    [(1.5, 3, 2.0), (30.0, 3, 1.2 * 29.7 / std_at(0.2)), (30.0, 2, 2.0)],
)
def test_restless_bound_by_hand(best, count, beta):
    """Where hope is left, and in every other query, the factor is that of the plain bound. With a
    best of 30 and no margin, the anchor 0.1, mean 0.3 and 0.2 from a query, needs 29.7 deviations,
    and the others, 0.1 from one, more; 1.2 times that is the new factor."""
    y = np.array([best, 0.0, -2.0])[:count]
    score = score_of(RestlessConfidenceBound(2.0, tolerance=0.0), X[:count], y)
    assert at(score, 0.5) == pytest.approx(1.5 + beta * std_at(0.1), rel=1e-12)
    assert at(score, 0.55) == pytest.approx(1.65 + beta * std_at(0.05), rel=1e-12)


def test_restless_bound_sees_no_noise_where_it_has_asked():
    assert at(score_of(RestlessConfidenceBound(2.0)), 0.6) == pytest.approx(1.8 + 1.0, rel=1e-12)


def test_restless_bound_without_data_is_the_upper_confidence_bound():
    score = score_of(RestlessConfidenceBound(2.0), *NOTHING)
    assert at(score, 0.5) == pytest.approx(4.5, rel=1e-12)


@pytest.mark.parametrize("acquisition", [RestlessConfidenceBound(), LogExpectedImprovement()])
def test_acquisition_scores_have_a_slope_where_nothing_is_uncertain(acquisition):
    score = score_of(acquisition, line=Line(0.0, 0.0))
    value, found = score.gradients(np.array([[0.6]]))
    assert np.isfinite(value).all() and np.isfinite(found).all()


@pytest.mark.parametrize(("x", "y", "best"), [(X, Y, 1.5), (*NOTHING, 1.2)])
def test_expected_improvement_matches_integration(x, y, best):
    """Over the best observation, or the best mean at the anchors, 3 * 0.4; without the noise."""
    score = score_of(LogExpectedImprovement(), x, y)
    for place in (0.1, 0.5, 1.0):
        density = partial(scipy.stats.norm.pdf, loc=3.0 * place, scale=0.5)
        expected, _ = quad(lambda f, p=density: (f - best) * p(f), best, best + 10)
        assert np.exp(at(score, place)) == pytest.approx(expected, rel=1e-6)


def gp_prior(**settings):
    method = SelfStandardisedGP(**settings)
    space = mp.Space(x=mp.Real(0.0, 1.0), z=mp.Real(0.0, 1.0))
    return mp.Prior(space, "maximize", TrainedContents(method, method.blank_surrogate(2)))


@pytest.mark.parametrize("kind", ["bound", "restless", "improvement", "path"])
def test_acquisition_gradients_match_differences(kind):
    rng = np.random.default_rng(3)
    x, y = rng.uniform(size=(7, 2)), rng.normal(size=7)
    acquisition = {
        "bound": UpperConfidenceBound(),
        "restless": RestlessConfidenceBound(),
        "improvement": LogExpectedImprovement(),
        "path": ThompsonSampling(),
    }[kind]
    believed = gp_prior(lengthscale=0.3, noise_variance=1e-2).belief.condition(x, y)
    score = acquisition.score(believed, rng.uniform(size=(30, 2)), rng).score
    points, step = rng.uniform(size=(5, 2)), 1e-6
    values, found = score.gradients(points)
    np.testing.assert_allclose(values, score.values(points), rtol=1e-9)
    for j, shift in enumerate(step * np.eye(2)):
        central = (score.values(points + shift) - score.values(points - shift)) / (2 * step)
        np.testing.assert_allclose(found[:, j], central, rtol=1e-4, atol=1e-6)


def test_thompson_sampling_draws_the_argmax_of_a_joint_sample():
    """Counts of the best of five candidates, against as many joint samples drawn by NumPy from a
    posterior worked out with plain linear algebra: chi-square at level 1e-3. Drawing every
    candidate by itself, as a sampler that ignored correlations would, must be rejected."""
    num = 1500
    x, y = np.array([[0.1], [0.35], [0.8]]), np.array([0.3, 0.9, -0.4])
    candidates = np.array([[0.0], [0.45], [0.5], [0.55], [1.0]])
    method = SelfStandardisedGP(lengthscale=0.8, noise_variance=1e-2)
    space = mp.Space(x=mp.Real(0.0, 1.0))
    prior = mp.Prior(space, "maximize", TrainedContents(method, method.blank_surrogate(1)))
    believed, rng = prior.belief.condition(x, y), np.random.default_rng(1)
    drawn = [
        np.argmax(ThompsonSampling().score(believed, candidates, rng).values) for _ in range(num)
    ]
    ours = np.bincount(drawn, minlength=5)

    def kernel(a, b):
        return np.exp(-0.5 * cdist(a, b, "sqeuclidean") * 12.0 / 0.8**2)

    weights = np.linalg.solve(kernel(x, x) + 1e-2 * np.eye(3), kernel(x, candidates))
    mean = y.mean() + y.std() * (weights.T @ ((y - y.mean()) / y.std()))
    cov = y.var() * (kernel(candidates, candidates) - kernel(candidates, x) @ weights)
    rng = np.random.default_rng(0)
    joint = rng.multivariate_normal(mean, cov, num, method="svd")
    direct = np.bincount(np.argmax(joint, axis=1), minlength=5)
    alone = mean + np.sqrt(np.diag(cov)) * rng.normal(size=(num, 5))
    independent = np.bincount(np.argmax(alone, axis=1), minlength=5)

    def p_value(a, b):
        table = np.array([a, b])
        tested: Any = scipy.stats.chi2_contingency(table[:, table.sum(axis=0) > 10])
        return tested.pvalue

    assert p_value(ours, direct) > 1e-3
    assert p_value(independent, direct) < 1e-6
