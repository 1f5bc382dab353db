"""What was learned, in a study that is larger: against a Gaussian process written out by hand."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from metaprior.belief import ExtendedBelief, NearestKnown, Novelty, UnitView
from metaprior.belief._extended import LENGTHSCALES, NOISE_FACTORS, SIZE_SPREAD, SIZES
from metaprior.belief._kernels import StackedSquaredExponential
from metaprior.belief._learned import ProcessBelief
from metaprior.belief._maps import StackedConstant, StackedNetwork, Unchanged
from metaprior.belief._novelty import REACH
from metaprior.belief._processes import GaussianProcesses
from metaprior.belief._refine import LogSpread

NOISE, LENGTHSCALE, VARIANCE, LEVEL = 0.01, 0.4, 2.0, 0.7
INF = np.inf


def learned(d):
    """Two members that differ in their mean."""
    ones = np.ones(2)
    processes = GaussianProcesses(
        x_mean=np.zeros((2, d)),
        x_std=np.ones((2, d)),
        warp=Unchanged(),
        mean=StackedConstant(np.array([LEVEL, -LEVEL])),
        features=Unchanged(),
        kernel=StackedSquaredExponential(LENGTHSCALE * np.ones((2, d)), VARIANCE * ones),
        offset_variance=np.zeros(2),
        amplitude_variance=np.zeros(2),
    )
    spread = LogSpread(np.zeros(2), np.zeros(2))
    return ProcessBelief(processes, NOISE * ones, spread, np.zeros(2), ones)


def view(matrix, offset):
    d = len(offset)
    zeros = np.zeros(d)
    return UnitView(np.array(matrix), np.array(offset), zeros.astype(int), zeros, np.ones(d))


def anywhere(d):
    return np.random.default_rng(9).uniform(size=(64, d))


def wider():
    """The prior knows the middle half of the first of two columns."""
    own = view([[2.0, 0.0], [0.0, 1.0]], [-0.5, 0.0])
    novelty = Novelty(
        np.array([0.25, -INF]), np.array([0.75, INF]), np.zeros(2, bool), np.zeros(2, bool)
    )
    return ExtendedBelief(
        learned(2), NearestKnown(own, np.array([True, False])), novelty, anywhere(2)
    )


def with_a_parameter():
    """And nothing of the second."""
    own = view([[1.0, 0.0]], [0.0])
    novelty = Novelty(
        np.array([-INF, -INF]), np.array([INF, INF]), np.zeros(2, bool), np.array([False, True])
    )
    return ExtendedBelief(learned(1), NearestKnown(own, np.array([False])), novelty, anywhere(1))


CASES = {"wider": wider, "with a parameter": with_a_parameter}
# The column along which something is new.
CASE_COLUMN = {"wider": 0, "with a parameter": 1}


def run(num=9):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(num, 2))
    return x, np.sin(5.0 * x[:, 0]) + x[:, 1]


def by_hand(case, x, y, at):
    """Mean and covariance at `at`, member by member, with the weights: one joint Gaussian for each,
    with nothing conditioned in two steps."""
    # Before a run, values differ by the variance of a member and by the levels of the two.
    unit = np.sqrt(VARIANCE + LEVEL**2)

    def matern(a, b, columns, lengthscale):
        r = np.sqrt(((a[:, None, columns] - b[None, :, columns]) ** 2).sum(2)) / lengthscale
        s = np.sqrt(5.0) * r
        return (1.0 + s + s**2 / 3.0) * np.exp(-s)

    def share_and_new(u):
        if case == "with a parameter":
            return np.ones(len(u)), np.ones(len(u))
        outside = np.maximum(np.maximum(0.25 - u[:, 0], u[:, 0] - 0.75), 0.0) / 0.5
        share = np.exp(-0.5 * (outside / REACH) ** 2)
        return share, np.sqrt(1.0 - share**2)

    def nearest(u):
        if case == "with a parameter":
            return u[:, :1]
        return np.stack([np.clip(2.0 * u[:, 0] - 0.5, 0.0, 1.0), u[:, 1]], 1)

    def covariance(a, b, size, lengthscale):
        (c, rho), (other_c, other_rho) = share_and_new(a), share_and_new(b)
        squares = ((nearest(a)[:, None] - nearest(b)[None]) ** 2).sum(2)
        known = VARIANCE * np.exp(-0.5 * squares / LENGTHSCALE**2)
        every = matern(a, b, [0, 1], lengthscale * np.sqrt(2.0))
        every = 0.5 * (every + matern(a, b, [CASE_COLUMN[case]], lengthscale))
        new = (unit * size) ** 2 * every
        return c[:, None] * other_c * known + rho[:, None] * other_rho * new

    inside = share_and_new(x)[1] == 0.0
    known_points = anywhere(1 if case == "with a parameter" else 2)
    own = learned(known_points.shape[1]).condition(nearest(x[inside]), y[inside])
    expected = own.moments(known_points).mean
    level = expected.mean()
    # Before a run, the two members together expect 0 everywhere: no point is better than others.
    usual = 1.0 if case == "with a parameter" else np.clip(-expected.max() / unit, 1.0, 1.5)
    found = []
    for own_level in (LEVEL, -LEVEL):
        for lengthscale, factor in product(LENGTHSCALES, NOISE_FACTORS):
            for size in SIZES:

                def mean(u, own_level=own_level):
                    share = share_and_new(u)[0]
                    return share * own_level + (1.0 - share) * level

                def k(a, b, size=size, lengthscale=lengthscale):
                    return covariance(a, b, size, lengthscale)

                noise = np.diag(NOISE * np.where(inside, 1.0, factor))
                solved = np.linalg.solve(k(x, x) + noise, k(x, at))
                evidence = multivariate_normal(mean(x), k(x, x) + noise).logpdf(y)
                if inside.any():  # learned members are as likely as each other on what they know
                    own = x[inside]
                    known = multivariate_normal(mean(own), k(own, own) + NOISE * np.eye(len(own)))
                    evidence -= known.logpdf(y[inside])
                evidence -= 0.5 * (np.log(size / usual) / SIZE_SPREAD) ** 2
                posterior = mean(at) + solved.T @ (y - mean(x))
                found.append((evidence, posterior, k(at, at) - k(at, x) @ solved))
    log_weights = np.array([evidence for evidence, *_ in found])
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum(), found


def rising():
    """The members expect more and more along the first column, by far more than they vary."""
    flat, own = wider(), learned(2)
    weights = np.full((2, 1, 2), [[1.0, 0.0]]), np.full((2, 1, 1), 12.0)
    network = StackedNetwork(weights, (np.zeros((2, 1)), np.zeros((2, 1))))
    processes = replace(own.processes, mean=network)
    return replace(flat, learned=replace(own, processes=processes))


def test_extended_expects_more_beyond_bounds_where_the_study_lacks_good_points():
    inside, at = np.full((1, 2), 0.74), np.array([[0.95, 0.5], [0.05, 0.5]])
    belief = rising()
    good, poor = (belief.condition(inside, np.array([y])).moments(at) for y in (9.0, -9.0))
    assert np.all(poor.function_variance > 2.0 * good.function_variance)
    assert belief.usual_size(belief.best) < 0.6 and belief.usual_size(-9.0) == 1.5


def test_extended_usual_size_is_one_if_nothing_is_known_of_good_points():
    """Flat members, and a new parameter, of which nothing follows from those."""
    assert wider().usual_size(3.0) == 1.0 and wider().usual_size(-9.0) == 1.5
    assert with_a_parameter().usual_size(3.0) == with_a_parameter().usual_size(-3.0) == 1.0


@pytest.mark.parametrize("case", CASES)
def test_extended_moments_are_those_of_one_joint_gaussian(case):
    x, y = run()
    at = np.random.default_rng(1).uniform(size=(6, 2))
    conditioned = CASES[case]().condition(x, y)
    weights, found = by_hand(case, x, y, at)
    means = np.array([mean for _, mean, _ in found])
    mean = weights @ means
    covariance = sum(
        w * (c + np.outer(m - mean, m - mean)) for w, (_, m, c) in zip(weights, found, strict=True)
    )
    moments = conditioned.moments(at)
    # Members that are a thousand times less likely than others are left out.
    np.testing.assert_allclose(moments.mean, mean, atol=1e-3)
    np.testing.assert_allclose(moments.function_variance, np.diag(covariance), rtol=1e-2)
    np.testing.assert_allclose(conditioned.covariance(at), covariance, atol=2e-3)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("num", [0, 9])
def test_extended_slopes_are_the_derivatives(case, num):
    conditioned = CASES[case]().condition(*run(num))
    # Inside, and outside on both sides.
    for u in np.array([[0.4, 0.3], [0.1, 0.9], [0.9, 0.2]]):
        slopes = conditioned.slopes(u[None])
        for name in ("mean", "function_variance"):

            def value(v, name=name):
                return getattr(conditioned.moments(v[None]), name)[0]

            expected = np.asarray(approx_fprime(u, value, 1e-6))
            np.testing.assert_allclose(getattr(slopes, name)[0], expected, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(getattr(slopes.moments, name)[0], value(u))


def test_extended_belief_is_the_learned_one_where_that_knows():
    """Before anything new was observed, bit for bit; and uncertainty grows outside."""
    belief, (x, y) = wider(), run()
    x = x * [0.5, 1.0] + [0.25, 0.0]
    own = learned(2).condition(belief.view(x), y)
    at = np.random.default_rng(2).uniform([0.25, 0.0], [0.75, 1.0], size=(50, 2))
    found, expected = belief.condition(x, y).moments(at), own.moments(belief.view(at))
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-10)
    np.testing.assert_allclose(found.function_variance, expected.function_variance, rtol=1e-9)
    outwards = np.stack([np.linspace(0.76, 1.0, 9), np.full(9, 0.5)], 1)
    variance = belief.condition(x, y).moments(outwards).function_variance
    assert np.all(np.diff(variance) > 0.0)
    # At the end, nothing is left of the past but how much values differ.
    assert variance[-1] > VARIANCE


def test_extended_belief_of_a_new_choice_begins_between_those_known():
    """Two known choices; in the study there is a third."""
    own = view([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]], [0.0, 0.0])
    nothing = np.full(3, INF)
    novelty = Novelty(-nothing, nothing, np.array([False, False, True]), np.zeros(3, bool))
    belief = ExtendedBelief(learned(2), NearestKnown(own, np.zeros(2, bool)), novelty, anywhere(2))
    choices = np.eye(3)
    observed = belief.condition(choices[:2], [3.0, 5.0])
    moments = observed.moments(choices)
    between = learned(2).condition(np.eye(2), [3.0, 5.0]).moments(np.full((1, 2), 0.5))
    np.testing.assert_allclose(moments.mean[2], between.mean[0])
    assert moments.function_variance[2] > between.function_variance[0] + VARIANCE
    tried = observed.observe(choices[2], 9.0).moments(choices)
    assert tried.mean[2] == pytest.approx(9.0, abs=0.3)
    np.testing.assert_allclose(tried.mean[:2], moments.mean[:2], atol=0.01)  # the others stay


@pytest.mark.parametrize("case", CASES)
def test_extended_paths_vary_as_the_belief_does(case):
    conditioned = CASES[case]().condition(*run())
    anchors = np.random.default_rng(3).uniform(size=(5, 2))
    (group,) = conditioned.groups
    for index in range(group.members.count):
        joint = group.members.joint(index, anchors)
        drawn = group.members.path(index, anchors, np.random.default_rng(4))(anchors)
        normals = np.random.default_rng(4).standard_normal(len(anchors))
        factor = np.linalg.cholesky(joint.covariance + 1e-6 * np.eye(len(anchors)))
        np.testing.assert_allclose(drawn, joint.mean + factor @ normals, atol=1e-3)
    rng = np.random.default_rng(5)
    path = conditioned.path(anchors, rng)
    for u in anchors[:3]:
        values, slopes = path.slopes(u[None])
        np.testing.assert_allclose(values, path(u[None]))
        expected = np.asarray(approx_fprime(u, lambda v: path(v[None])[0], 1e-6))
        np.testing.assert_allclose(slopes[0], expected, atol=1e-3)
