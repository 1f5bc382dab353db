"""The guard: trust in priors known to be right or wrong, mixtures by hand, averaged GP by scipy."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from metaprior.data import Run, Standardiser, run_of
from metaprior.gp import AbstractMean, GaussianProcess, Spread, SquaredExponential
from metaprior.methods import FPacohMap, GPSurrogate, Guarded, GuardedSurrogate
from metaprior.methods import _averaged_gp as plain_gp
from metaprior.methods._averaged_gp import AveragedGPSurrogate
from metaprior.methods._evidence import MOST_SCORED, scores, spread_out, stages
from metaprior.methods._guarded import Caution, TrustedSurrogate

LEVEL, SCALE = 50.0, 20.0
CAUTION = Guarded().caution
CAPACITY = 16


class Hill(AbstractMean):
    """A hill around (0.3, 0.6), about as high as it is deep."""

    height: float

    def __call__(self, x):
        return self.height * (1.0 - 6.0 * jnp.sum((x - jnp.array([0.3, 0.6])) ** 2))


def learned(height):
    """A prior that is sure of a hill, or of a valley if it is upside down."""
    kernel = SquaredExponential(jnp.log(jnp.full(2, 0.4)), jnp.log(0.04))
    process = GaussianProcess(Hill(height), kernel, jnp.log(jnp.asarray(1e-4)))
    units = Standardiser(jnp.zeros(2), jnp.ones(2), jnp.asarray(LEVEL), jnp.asarray(SCALE))
    return GPSurrogate(process, units, Spread(jnp.asarray(0.0), jnp.asarray(0.0)))


def guarded(height=1.0, caution=CAUTION) -> GuardedSurrogate:
    return GuardedSurrogate(learned(height), jnp.asarray(LEVEL), jnp.asarray(SCALE), caution)


FRIENDLY, MISLEADING = guarded(1.0), guarded(-1.0)


def hill_run(num, seed=0, around=None):
    """Values of a hill in the units of the past, at random points, or in a cluster."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(num, 2))
    if around is not None:
        x = np.clip(around + 0.01 * (x - 0.5), 0.0, 1.0)
    height = np.asarray(jax.vmap(Hill(1.0 + 0.1 * rng.normal()))(jnp.asarray(x)))
    return run_of(x, LEVEL + SCALE * (height + 0.05 * rng.normal()))


@eqx.filter_jit
def trust(surrogate, run):
    return surrogate.trust(run)


def test_guarded_trust_before_the_first_observation_is_the_prior_trust():
    for surrogate in (FRIENDLY, MISLEADING):
        np.testing.assert_allclose(trust(surrogate, hill_run(0)), 0.95)


@pytest.mark.parametrize("seed", range(5))
def test_guarded_trust_stays_for_a_right_prior_and_falls_for_a_wrong_one(seed):
    right = [float(trust(FRIENDLY, hill_run(n, seed))) for n in (2, 5, 8, 15)]
    wrong = [float(trust(MISLEADING, hill_run(n, seed))) for n in (2, 5, 8, 15)]
    assert min(right) > CAUTION.all_above and right[-1] > 0.95
    assert max(wrong[1:]) < CAUTION.all_above and max(wrong[2:]) < CAUTION.nothing_below


def test_guarded_no_single_observation_takes_all_trust():
    for value in (-1e9, 1e9):
        run = run_of(np.array([[0.3, 0.6]]), np.array([value]))
        assert CAUTION.nothing_below < trust(FRIENDLY, run) < CAUTION.all_above


def test_guarded_trust_ignores_a_cluster():
    """Points next to each other are predicted well by any model: they do not restore trust."""
    far, near = hill_run(6, 1), hill_run(8, 2, around=np.array([0.9, 0.1]))
    x = np.concatenate([far.x[:6], near.x[:8]])
    y = np.concatenate([far.y[:6], near.y[:8]])
    before, after = (trust(MISLEADING, run_of(x[:n], y[:n])) for n in (7, 14))
    np.testing.assert_allclose(after, before, atol=0.02)


@settings(max_examples=10, deadline=None)
@given(num=st.integers(0, CAPACITY), seed=st.integers(0, 100), height=st.sampled_from([1.0, -1.0]))
def test_guarded_trust_belongs_to_the_set_of_observations(num, seed, height):
    run = hill_run(num, seed)
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(num), np.arange(num, CAPACITY)])
    junk = jnp.where(run.mask, run.y, 1e3)
    permuted = Run(run.x[order], junk[order], run.length)
    surrogate = guarded(height)
    np.testing.assert_allclose(trust(surrogate, permuted), trust(surrogate, run), rtol=1e-9)


def test_guarded_trust_does_not_depend_on_the_unit_of_the_values():
    run = hill_run(9)
    expected = trust(MISLEADING, run)
    other = eqx.tree_at(
        lambda s: (s.y_mean, s.y_std, s.learned.standardiser.y_mean, s.learned.standardiser.y_std),
        MISLEADING,
        (jnp.asarray(-7.0), jnp.asarray(1e-3), jnp.asarray(-7.0), jnp.asarray(1e-3)),
    )
    scaled = Run(run.x, -7.0 + 1e-3 * (run.y - LEVEL) / SCALE, run.length)
    np.testing.assert_allclose(trust(other, scaled), expected, rtol=1e-6)


@pytest.mark.slow
def test_guarded_batches_are_the_same_as_one_by_one():
    runs = [hill_run(n, n) for n in (0, 3, 9)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)

    def predicted(run):
        return MISLEADING.condition(run).moments(jnp.array([0.2, 0.9]))

    together = eqx.filter_jit(jax.vmap(predicted))(stacked)
    one = eqx.filter_jit(predicted)
    for i, run in enumerate(runs):
        np.testing.assert_allclose([m[i] for m in together], one(run), rtol=1e-6)


def at_trust(value):
    run = hill_run(5)
    return run, conditioned(FRIENDLY.at(jnp.asarray(value)), run)


@eqx.filter_jit
def conditioned(surrogate, run):
    return surrogate.condition(run)


@eqx.filter_jit
def everything(posterior):
    x, y, key = jnp.array([[0.2, 0.9], [0.8, 0.1]]), jnp.asarray(45.0), jr.key(3)
    path = posterior.path(x, key=key)
    return [
        *posterior.moments(x[0]),
        posterior.log_density(x[0], y),
        posterior.cdf(x[0], y),
        posterior.sample(x, 3, key=key),
        path(x[1]),
    ]


def test_guarded_with_full_trust_the_posterior_is_exactly_the_learned_one():
    run, posterior = at_trust(CAUTION.all_above)
    for mine, theirs in zip(
        everything(posterior), everything(conditioned(FRIENDLY.learned, run)), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


def test_guard_without_trust_has_the_posterior_of_the_non_transfer_gp():
    run, posterior = at_trust(CAUTION.nothing_below - 1e-9)
    expected = conditioned(FRIENDLY.averaged, run)
    for mine, theirs in zip(everything(posterior)[:5], everything(expected)[:5], strict=True):
        # The compiler may round differently, no more.
        np.testing.assert_allclose(mine, theirs, rtol=1e-13)


def test_guarded_settled_leaves_out_what_is_not_used():
    assert FRIENDLY.settled(CAUTION.all_above) is FRIENDLY.learned
    assert isinstance(FRIENDLY.settled(CAUTION.nothing_below - 1e-9), AveragedGPSurrogate)
    assert FRIENDLY.unguarded is FRIENDLY.learned and FRIENDLY.judges
    assert FRIENDLY.guarding(FRIENDLY.averaged).learned == FRIENDLY.averaged
    both = FRIENDLY.settled(0.4)
    assert isinstance(both, TrustedSurrogate) and both.given_trust == 0.4


@pytest.mark.slow
def test_guarded_posterior_in_between_is_their_mixture():
    run, posterior = at_trust(0.4)
    x, y = jnp.array([0.2, 0.9]), jnp.asarray(45.0)
    ours, theirs = (conditioned(each, run) for each in (FRIENDLY.learned, FRIENDLY.averaged))
    a, b = ours.moments(x), theirs.moments(x)
    mean = 0.4 * float(a.mean) + 0.6 * float(b.mean)
    second = 0.4 * float(a.variance + a.mean**2) + 0.6 * float(b.variance + b.mean**2)
    found = posterior.moments(x)
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.variance, second - mean**2, rtol=1e-8)
    density = 0.4 * np.exp(ours.log_density(x, y)) + 0.6 * np.exp(theirs.log_density(x, y))
    np.testing.assert_allclose(np.exp(posterior.log_density(x, y)), density)
    below = 0.4 * ours.cdf(x, y) + 0.6 * theirs.cdf(x, y)
    np.testing.assert_allclose(posterior.cdf(x, y), below)


def test_guarded_learned_prior_that_predicts_nothing_is_not_trusted():
    broken = eqx.tree_at(lambda s: s.learned.process.log_noise_variance, FRIENDLY, jnp.nan)
    assert trust(broken, hill_run(5)) < CAUTION.nothing_below


@settings(max_examples=15, deadline=None)
@given(num=st.integers(1, CAPACITY), seed=st.integers(0, 1000), outwards=st.sampled_from([1, -1]))
def test_guarded_points_are_spread_out(num, seed, outwards):
    run = hill_run(num, seed)
    found, novelty = eqx.filter_jit(spread_out)(run, jnp.asarray(float(outwards)))
    x = np.asarray(found.x)[:num]
    given_x = np.asarray(run.x)[:num]
    from_centre = outwards * np.sum((given_x - 0.5) ** 2, axis=1)
    chosen = [given_x[np.argmin(from_centre)]]
    expected = [1.0]
    for _ in range(num - 1):
        nearest = np.min(np.sum((given_x[:, None] - np.array(chosen)) ** 2, axis=2), axis=1)
        chosen.append(given_x[np.argmax(nearest)])
        expected.append(1.0 - np.exp(-np.max(nearest) / 0.08))
    np.testing.assert_array_equal(x, chosen)
    np.testing.assert_allclose(np.asarray(novelty)[:num], expected, atol=1e-12)
    assert (np.asarray(novelty)[num:] == 0.0).all()


@pytest.mark.slow
def test_guarded_long_run_is_judged_by_some_of_its_points():
    long = hill_run(100)
    found, _ = eqx.filter_jit(spread_out)(long, jnp.asarray(1.0))
    assert found.y.shape == (MOST_SCORED,) and int(found.length) == MOST_SCORED
    assert trust(FRIENDLY, long) > 0.95 and trust(MISLEADING, long) < CAUTION.all_above


def test_guarded_stages_double_what_they_are_predicted_from():
    contexts, stage_of = stages(9)
    np.testing.assert_array_equal(contexts, [0, 1, 2, 4, 8])
    np.testing.assert_array_equal(contexts[stage_of], [0, 1, 2, 2, 4, 4, 4, 4, 8])


def test_guarded_scores_are_the_densities_of_predictions_from_the_points_before():
    """Against scikit-learn, at the third and fourth point."""
    run = hill_run(4)
    found = np.asarray(eqx.filter_jit(scores)(learned(1.0), run, jnp.asarray(0.3)))
    x, y = np.asarray(run.x), (np.asarray(run.y) - LEVEL) / SCALE
    mean = np.asarray(jax.vmap(Hill(1.0))(run.x))
    kernel = ConstantKernel(0.04, "fixed") * RBF(0.4, "fixed")
    model = GaussianProcessRegressor(kernel, alpha=1e-4)
    model.fit(x[:2], (y - mean)[:2])
    shift, std = (np.asarray(value) for value in model.predict(x[2:4], return_std=True))
    variance = SCALE**2 * (std**2 + 1e-4) + 0.3
    expected = stats.norm.logpdf(
        np.asarray(run.y)[2:4], LEVEL + SCALE * (mean[2:4] + shift), np.sqrt(variance)
    )
    np.testing.assert_allclose(found[2:4], expected, rtol=1e-6)


def test_averaged_gp_weights_hyper_parameters_by_evidence():
    """Against numerical integration over the scale, which knows no closed form."""
    run = hill_run(6)
    posterior = conditioned(FRIENDLY.averaged, run)
    x, y = np.asarray(run.x)[:6], (np.asarray(run.y)[:6] - LEVEL) / SCALE
    squares = np.sum((x[:, None] - x[None]) ** 2, axis=-1)
    log_scale = np.linspace(-25.0, 25.0, 20001)
    scale = np.exp(log_scale)
    prior = plain_gp.RATE_WEIGHTS @ stats.invgamma.pdf(
        scale[None], plain_gp.SHAPE, scale=plain_gp.RATES[:, None]
    )
    evidence = []
    for noise in plain_gp.NOISES:
        for lengthscale in plain_gp.LENGTHSCALES * np.sqrt(2):
            matrix = np.exp(-0.5 * squares / lengthscale**2) + 1.0 + (noise + 1e-8) * np.eye(6)
            square = (y - y.mean()) @ np.linalg.solve(matrix, y - y.mean())
            # One of the six values is spent on the level.
            likelihood = scale ** (-5 / 2) * np.exp(-0.5 * square / scale)
            integral = np.trapezoid(prior * likelihood * scale, log_scale)
            evidence.append(integral / np.sqrt(np.linalg.det(matrix)))
    expected = np.array(evidence) / np.sum(evidence)
    np.testing.assert_allclose(posterior.weights, expected, rtol=1e-4, atol=1e-12)
    assert np.sum(expected > 0.01) > 1


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_averaged_gp_finds_level_and_scale_of_a_run(scale):
    """Far from those of the past as well."""
    run = hill_run(14)
    y = 1e5 + scale * (np.asarray(run.y)[:14] - LEVEL)
    posterior = conditioned(FRIENDLY.averaged, run_of(np.asarray(run.x)[:14], y))
    found = jax.vmap(posterior.moments)(run.x[:14])
    np.testing.assert_allclose(found.mean, y, atol=0.2 * scale * SCALE)
    far = posterior.moments(jnp.array([5.0, 5.0]))
    assert 0.2 * scale * SCALE < np.sqrt(far.variance) < 20 * scale * SCALE


@pytest.mark.parametrize("base", [Guarded(), "FPacohMap"])
def test_only_a_method_without_a_guard_can_be_guarded(base):
    # Called by itself: in these tests, wrong types are stopped before it is.
    with pytest.raises(TypeError, match="^`base` of Guarded is .*; give a method without a guard"):
        Guarded.__post_init__(SimpleNamespace(base=base))  # pyright: ignore


@pytest.mark.parametrize(
    "change",
    [
        {"prior_trust": 1.0},
        {"prior_trust": 0.5},
        {"all_above": 0.1},
        {"nothing_below": 0.0},
        {"temperature": -1.0},
        {"temperature": float("nan")},
    ],
)
def test_guarded_refuses_impossible_numbers(change):
    with pytest.raises(ValueError, match="Guarded.*(change one of them|at least 0)[.]$"):
        Guarded(FPacohMap(), **change)


def test_guarded_numbers_reach_the_surrogate():
    blank = Guarded(FPacohMap(), temperature=0.0, prior_trust=0.9).blank_surrogate(2)
    assert blank.caution == Caution(0.9, 0.0, 0.75, 0.25)
    np.testing.assert_allclose(trust(guarded(-1.0, blank.caution), hill_run(9)), 0.9)


def test_trust_of_a_surrogate_without_a_guard_is_one():
    bare = FRIENDLY.learned
    assert bare.trust(hill_run(5)) == 1.0 and not bare.judges
    assert bare.settled(0.0) is bare.unguarded is bare
    other = FRIENDLY.averaged
    assert bare.guarding(other) is other
