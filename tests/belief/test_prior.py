"""Prior and posterior in the user's hands: their units, their sign, and what they refuse."""

import jax
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import metaprior as mp
from metaprior.methods import FixedGP

SPACE = mp.Space(lr=mp.Real(1e-4, 1e-1, log=True), k=mp.Integer(1, 5), c=mp.Categorical(["a", "b"]))
NOISE = 0.04


def points(seed, num):
    rng = np.random.default_rng(seed)
    return [
        {
            "lr": float(10 ** rng.uniform(-4, -1)),
            "k": int(rng.integers(1, 6)),
            "c": "ab"[rng.integers(2)],
        }
        for _ in range(num)
    ]


def values(rows):
    return np.array([100 + 20 * np.log10(p["lr"]) + p["k"] + 5 * (p["c"] == "a") for p in rows])


@pytest.fixture(scope="module")
def pair():
    """The same past, once to be maximised and once, with opposite values, to be minimised."""
    past = [points(seed, 6) for seed in range(3)]
    method = FixedGP(lengthscale=0.6, noise_variance=NOISE)
    return [
        mp.learn(
            mp.Tasks.from_runs(
                [(p, s * values(p)) for p in past], space=SPACE, direction=direction
            ),
            method=method,
        )
        for s, direction in ((1, "maximize"), (-1, "minimize"))
    ]


def test_posterior_of_minimising_mirrors_that_of_maximising(pair):
    run, test = points(10, 5), points(11, 7)
    y, level = values(run), values(test) + 3.0
    up, down = pair[0].condition(run, y), pair[1].condition(run, -y)
    for noiseless in (False, True):
        mean, std = up.predict(test, noiseless=noiseless)
        mirrored, same = down.predict(test, noiseless=noiseless)
        np.testing.assert_array_equal(mirrored, -mean)
        np.testing.assert_array_equal(same, std)
    np.testing.assert_array_equal(up.log_density(test, level), down.log_density(test, -level))
    np.testing.assert_allclose(up.cdf(test, level), 1.0 - down.cdf(test, -level), rtol=1e-12)
    np.testing.assert_array_equal(up.sample(test, 3, seed=0), -down.sample(test, 3, seed=0))


@pytest.mark.parametrize("side", [0, 1])
def test_posterior_density_and_cdf_are_those_of_the_predicted_normal(pair, side):
    run, test = points(10, 5), points(11, 7)
    sign = (1, -1)[side]
    posterior = pair[side].condition(run, sign * values(run))
    mean, std = posterior.predict(test)
    level = mean + np.linspace(-3, 3, 7) * std
    cdf = scipy.stats.norm.cdf(level, mean, std)
    np.testing.assert_allclose(posterior.cdf(test, level), cdf, rtol=1e-9)
    log_density = scipy.stats.norm.logpdf(level, mean, std)
    np.testing.assert_allclose(posterior.log_density(test, level), log_density, rtol=1e-9)
    _, function_std = posterior.predict(test, noiseless=True)
    scale = float(pair[side].surrogate.standardiser.y_std)
    np.testing.assert_allclose(std**2 - function_std**2, NOISE * scale**2, rtol=1e-9)


def test_posterior_samples_have_the_noiseless_moments_and_are_joint(pair):
    """4 standard errors of means and standard deviations from 4000 samples; neighbours agree."""
    run = points(10, 5)
    test = [*points(11, 3), {"lr": 1e-3, "k": 3, "c": "a"}, {"lr": 1.01e-3, "k": 3, "c": "a"}]
    posterior = pair[0].condition(run, values(run))
    mean, std = posterior.predict(test, noiseless=True)
    drawn = posterior.sample(test, 4000, seed=0)
    assert drawn.shape == (4000, 5)
    assert (np.abs(drawn.mean(axis=0) - mean) < 4 * std / np.sqrt(4000)).all()
    assert (np.abs(drawn.std(axis=0) - std) < 4 * std / np.sqrt(8000)).all()
    assert np.corrcoef(drawn[:, 3], drawn[:, 4])[0, 1] > 0.99
    np.testing.assert_array_equal(drawn, posterior.sample(test, 4000, seed=0))
    assert not np.array_equal(drawn, posterior.sample(test, 4000, seed=1))


def test_posterior_of_nothing_observed_and_nothing_asked(pair):
    """Empty lists and arrays everywhere: the prior itself, and empty answers."""
    test = points(11, 7)
    nothing = pair[0].condition([], [])
    mean, std = nothing.predict(test)
    standardiser = pair[0].surrogate.standardiser
    np.testing.assert_allclose(mean, float(standardiser.y_mean), rtol=1e-12)
    np.testing.assert_allclose(std, float(standardiser.y_std) * np.sqrt(1 + NOISE), rtol=1e-12)
    also = pair[0].condition(np.zeros((0, 3)), np.zeros(0))
    np.testing.assert_array_equal(also.predict(test), (mean, std))
    for answer in (*nothing.predict([]), nothing.log_density([], []), nothing.cdf([], [])):
        assert answer.shape == (0,) and answer.dtype == np.float64
    assert nothing.sample([], 2, seed=0).shape == (2, 0)


def test_posterior_predicts_many_points_as_it_predicts_few(pair):
    """600 points, against the same points in slices that share no block: equal up to the order in
    which a matrix product sums."""
    run, test = points(10, 5), points(12, 600)
    posterior = pair[0].condition(run, values(run))
    slices = [slice(0, 100), slice(100, 101), slice(101, 350), slice(350, 600)]
    for function in (
        lambda p: np.stack(posterior.predict(p)),
        lambda p: posterior.cdf(p, values(p))[None],
    ):
        whole = function(test)
        parts = np.concatenate([function(test[s]) for s in slices], axis=1)
        assert whole.shape[1] == 600
        np.testing.assert_allclose(whole, parts, rtol=1e-13)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**31), num=st.integers(1, 16), row=st.integers(0, 15))
def test_posterior_ignores_order_and_shrinks_with_observations(pair, seed, num, row):
    run, row = points(seed, num), row % num
    y = values(run)
    mean, std = pair[0].condition(run, y).predict(run)
    order = np.random.default_rng(seed).permutation(num)
    shuffled = pair[0].condition([run[i] for i in order], y[order])
    np.testing.assert_allclose(shuffled.predict(run)[0], mean, rtol=1e-7)
    without = [i for i in range(num) if i != row]
    _, before = pair[0].condition([run[i] for i in without], y[without]).predict(run)
    assert (std <= before + 1e-9).all() and std[row] < before[row]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_prior_condition_refuses_values_that_are_not_numbers_by_row(pair, bad):
    run = points(10, 4)
    y = values(run)
    y[2] = bad
    posterior = pair[0].condition([], [])
    for call in (
        lambda: pair[0].condition(run, y),
        lambda: posterior.log_density(run, y),
        lambda: posterior.cdf(run, y),
    ):
        with pytest.raises(ValueError, match=rf"^The value in row 2 is {bad}; [^.]*\.$"):
            call()


def test_prior_condition_refuses_points_outside_of_the_space(pair):
    with pytest.raises(ValueError, match="^Got 4 points but 3 values; [^.]*[.]$"):
        pair[0].condition(points(10, 4), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="row 1, dimension 'k': received 9"):
        pair[0].condition([{"lr": 1e-2, "k": 2, "c": "a"}, {"lr": 1e-2, "k": 9, "c": "a"}], [1, 2])
    with pytest.raises(ValueError, match="row 0, dimension 'c'.*none of the choices"):
        pair[0].condition([], []).predict([{"lr": 1e-2, "k": 2, "c": "z"}])


def test_posterior_of_many_observations_at_few_places_is_finite(pair, hill_prior):
    run = points(10, 3) * 20
    y = values(run) + np.random.default_rng(0).normal(size=60)
    mean, std = pair[0].condition(run, y).predict(points(11, 7))
    assert np.isfinite(mean).all() and (std > 0).all()
    spot = np.tile([[0.1, 5.0]], (16, 1))
    posterior = hill_prior.condition(spot, np.full(16, 1e6))
    mean, std = posterior.predict([[0.1, 5.0], [-1.0, 0.0]])
    assert np.isfinite(mean).all() and (std > 0).all()
    assert np.isfinite(posterior.sample(np.tile(spot, (4, 1)), 2, seed=0)).all()


def test_posterior_answers_are_numpy_in_double_precision(pair):
    mean, std = pair[0].condition(points(1, 2), [1.0, 2.0]).predict(points(2, 3))
    for answer in (mean, std):
        assert isinstance(answer, np.ndarray) and not isinstance(answer, jax.Array)
        assert answer.dtype == np.float64 and answer.shape == (3,)
