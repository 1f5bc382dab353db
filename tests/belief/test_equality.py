"""Beliefs say what the compiled surrogates say, for every method and runs of any length."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metaprior.belief import _read, belief_of
from metaprior.belief._fitted import HyperParameterDensity, fit
from metaprior.belief._learned import mean_and_std
from metaprior.belief._random import fold_in, key_of, normal, single_precision_normal, split
from metaprior.data import run_of
from metaprior.methods import FittedGP, known_methods
from tests.belief.conftest import METHODS, NUM_COLUMNS, read_belief, read_files

CAPACITY = 32
LENGTHS = (0, 1, 7, 30)
# Hyper-parameters fitted to a run agree as far as the optimum is flat: tested further down.
FITTED = {"FittedGP", "RankWeightedGP", "Guarded RankWeightedGP"}
# Asked in NumPy alone; compiled code sees the guard.
MIXED = {"Weighed"}
# Draws in single precision agree up to its rounding: tested further down.
DRAWN = {"FPacohVI", "FPacohVI with a composed kernel", "Ensemble of FPacohVI"}


# Every one has its formulas in common with some of the others.
ALIKE = {
    "Ensemble",
    "FPacohMap",
    "FPacohMap with a composed kernel",
    "FixedGP",
    "LearnedGP",
    "PacohMap",
    "Ensemble of ABLR",
    "Ensemble of FPacohVI",
    "FPacohVI with a composed kernel",
    "Guarded RankWeightedGP",
}


def cases(names):
    return [pytest.param(n, marks=[pytest.mark.slow] * (n in ALIKE)) for n in sorted(names)]


@eqx.filter_jit
def compiled(surrogate, run, x, y):
    posterior = surrogate.condition(run)
    moments = jax.vmap(posterior.moments)(x)
    density = jax.vmap(posterior.log_density)(x, y)
    return moments, density, jax.vmap(posterior.cdf)(x, y)


def padded(x, y):
    """One shape for runs of all lengths."""
    return run_of(x, y, spare=CAPACITY - len(y))


def assert_equal(saved, belief, x, y, queries, rtol):
    values = y.mean() + np.linspace(-2.0, 2.0, len(queries)) if len(y) else np.ones(len(queries))
    moments, density, cdf = compiled(
        saved.prior.surrogate, padded(x, y), jnp.asarray(queries), jnp.asarray(values)
    )
    found = belief.condition(x, y)
    expected_std = np.sqrt(moments.variance)
    np.testing.assert_allclose(
        (found.moments(queries).mean - moments.mean) / expected_std, 0.0, atol=rtol
    )
    for name in ("function_variance", "noise_variance", "variance"):
        np.testing.assert_allclose(
            getattr(found.moments(queries), name), getattr(moments, name), rtol=rtol, err_msg=name
        )
    np.testing.assert_allclose(found.log_density(queries, values), density, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.cdf(queries, values), cdf, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", cases(METHODS.keys() - FITTED - DRAWN - MIXED))
def test_belief_equals_compiled_posterior(saved, run, queries, name, length):
    x, y = (part[:length] for part in run)
    assert_equal(saved(name), saved(name).belief, x, y, queries, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", cases(DRAWN))
def test_belief_of_hyper_posterior_equals_compiled_one_with_its_normals(
    saved, run, queries, monkeypatch, name, length
):
    def as_compiled(key, shape):
        return np.asarray(jax.random.normal(jax.random.key(0), shape, jnp.float32).astype(float))

    monkeypatch.setattr(_read, "single_precision_normal", as_compiled)
    x, y = (part[:length] for part in run)
    assert_equal(saved(name), read_belief(saved(name).folder), x, y, queries, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", cases(FITTED))
def test_belief_with_fitted_process_is_close_to_compiled_one(saved, run, queries, name, length):
    """The square root of what double precision leaves of a flat optimum."""
    x, y = (part[:length] for part in run)
    assert_equal(saved(name), saved(name).belief, x, y, queries, 1e-5)


@pytest.mark.parametrize("length", LENGTHS)
def test_belief_fit_is_no_worse_than_compiled_fit(run, length):
    x, y = (part[:length] for part in run)
    mean, std = mean_and_std(y)
    padded_run, y = padded(x, y), (y - mean) / std
    surrogate = FittedGP(num_steps=25).from_scratch(NUM_COLUMNS)
    process: Any = eqx.filter_jit(surrogate.condition)(padded_run).conditioned.process
    theirs = np.concatenate(
        [
            [process.mean.value, process.log_noise_variance, process.kernel.log_variance],
            process.kernel.log_lengthscale,
        ]
    )
    density = HyperParameterDensity(x[None], y[None])
    (ours,) = fit(x[None], y[None], num_steps=25)
    found, expected = density.values(np.stack([ours, theirs]))
    assert found >= expected - 1e-6
    # The control: the comparison is one of optima, which a small step from them loses.
    moved = theirs + np.eye(len(theirs))[1] * 0.5
    assert density.values(moved[None])[0] < expected - 1e-3


def test_belief_trust_equals_compiled_guard(saved, run):
    x, y = run
    surrogate, belief = saved("Guarded").prior.surrogate, saved("Guarded").belief
    trust = jax.jit(lambda r: surrogate.trust(r))
    # What the prior expects, what it does not, and in between: the trust falls by many steps.
    for values in (y, -20.0 * y, y + 8.0 * np.sin(30.0 * x[:, 0])):
        for length in (1, 2, 3, 7, 30):
            expected = float(trust(padded(x[:length], values[:length])))
            found = belief.trust(x[:length], values[:length])
            np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("trust", [0.1, 0.5, 0.9])
def test_belief_settled_equals_compiled_guard_at_a_trust(saved, run, queries, trust):
    x, y = (part[:7] for part in run)
    surrogate = saved("Guarded").prior.surrogate
    posterior = eqx.filter_jit(lambda s, r: s.condition(r))(surrogate.settled(trust), padded(x, y))
    expected = jax.jit(jax.vmap(posterior.moments))(jnp.asarray(queries))
    found = saved("Guarded").belief.settled(trust).condition(x, y).moments(queries)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-8)
    np.testing.assert_allclose(found.function_variance, expected.function_variance, rtol=1e-8)
    np.testing.assert_allclose(found.noise_variance, expected.noise_variance, rtol=1e-8)


def test_belief_normals_equal_those_of_jax():
    key, ours = jax.random.key(7), key_of(7)
    np.testing.assert_array_equal(split(ours, 3), jax.random.key_data(jax.random.split(key, 3)))
    folded = jax.random.fold_in(key, 11)
    np.testing.assert_array_equal(fold_in(ours, 11), jax.random.key_data(folded))
    expected = jax.random.normal(folded, (1000,))
    np.testing.assert_allclose(normal(fold_in(ours, 11), 1000), expected, rtol=1e-12, atol=1e-14)


def test_belief_single_precision_normals_equal_those_of_jax_up_to_rounding():
    expected = np.asarray(jax.random.normal(jax.random.key(0), (5, 4000), jnp.float32), float)
    found = single_precision_normal(key_of(0), (5, 4000))
    # Four units in the last place; most numbers agree in all of their bits.
    np.testing.assert_allclose(found, expected, rtol=4 * float(np.finfo(np.float32).eps))
    assert np.mean(found == expected) > 0.9


def test_belief_is_missing_for_kernels_of_other_packages():
    for name in ("FPacohMap", "LearnedGP", "FixedGP"):
        for kernel in (
            {"kernel": "Theirs"},
            {"kernel": "SumKernel", "left": None, "right": {"kernel": "Theirs"}},
        ):
            assert belief_of({"name": name, "kernel": kernel}, {}, NUM_COLUMNS) is None
    assert belief_of({"name": "FittedGP", "kernel": {"kernel": "Linear"}}, {}, NUM_COLUMNS) is None


def test_belief_is_missing_for_methods_that_are_no_gaussian_processes():
    for name in ("NeuralProcess", "FPacohBNN"):
        assert belief_of({"name": name}, {}, NUM_COLUMNS) is None
        assert belief_of({"name": "Guarded", "base": {"name": name}}, {}, NUM_COLUMNS) is None


def test_belief_exists_for_every_other_method(saved):
    covered = {type(METHODS[name]()).__name__ for name in METHODS}
    assert covered == known_methods().keys() - {"NeuralProcess", "FPacohBNN"}


def _wrong_shape(arrays):
    arrays[".standardiser.x_mean"] = arrays[".standardiser.x_mean"][:-1]


def _missing(arrays):
    del arrays[".process.plain.kernel.features.layers[3].bias"]


def _foreign(arrays):
    arrays[".process.more"] = np.zeros(2)


def _wrong_type(arrays):
    arrays[".spread.noise"] = arrays[".spread.noise"].astype(np.float32)


@pytest.mark.parametrize(
    "damage, named",
    [
        (_wrong_shape, r"\.standardiser\.x_mean is float64\[2\] where float64\[3\] was expected"),
        (_missing, r"\.kernel\.features\.layers\[3\]\.bias is missing"),
        (_foreign, r"\.more is there where nothing was expected"),
        (_wrong_type, r"\.spread\.noise is float32\[\] where float64\[\] was expected"),
    ],
)
def test_belief_of_names_arrays_that_do_not_fit(saved, damage, named):
    settings, arrays = read_files(saved("FPacohMap").folder)
    damage(arrays)
    with pytest.raises(ValueError, match=named):
        belief_of(settings, arrays, NUM_COLUMNS)
