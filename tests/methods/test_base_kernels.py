"""Methods with a base kernel of the user's choice: trained, saved, loaded, compared."""

import dataclasses
import json
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.gaussian_process.kernels import Matern as SklearnMatern

import metaprior as mp
from metaprior.gp import (
    Constant,
    EffectsProcess,
    FeatureKernel,
    Linear,
    Matern,
    SquaredExponential,
)
from metaprior.methods import (
    FittedGP,
    FixedGP,
    FPacohMap,
    FPacohVI,
    GPSurrogate,
    LearnedGP,
    PacohMap,
    meta_train_many,
    method_of,
    settings_of,
)
from metaprior.store._migration import settings_of_format_1
from tests.conformance.cases import hill_tasks

KERNEL = Matern(np.log(0.5), smoothness=1.5) + Linear(-1.0)
METHODS = [
    FPacohMap(num_steps=10, kernel=KERNEL, amplitude=True),
    FPacohVI(num_steps=3, num_priors=2, num_functions=2, kernel=KERNEL),
    PacohMap(num_steps=10, kernel=KERNEL),
    LearnedGP(num_steps=10, kernel=KERNEL),
    FixedGP(kernel=KERNEL),
    FittedGP(num_steps=2, kernel=KERNEL),
]


@pytest.fixture(scope="module")
def tasks() -> mp.Tasks:
    return hill_tasks()


# The objectives of the others compile for several seconds each.
QUICK = (FPacohMap, FixedGP)


@pytest.mark.parametrize(
    "method",
    [pytest.param(m, marks=[pytest.mark.slow] * (type(m) not in QUICK)) for m in METHODS],
    ids=lambda m: type(m).__name__,
)
def test_method_with_a_base_kernel_is_trained_saved_and_loaded(method, tasks, tmp_path):
    prior = mp.learn(tasks, method=method, seed=0)
    loaded = mp.load(prior.save(tmp_path / "prior"), space=prior.space)
    assert loaded.method == method
    points = tasks.space.decode(tasks.x[3, :4])
    values = tasks.y[3, :4]
    found = loaded.condition(points, values)
    expected = prior.condition(points, values)
    for mine, theirs in zip(found.predict(points), expected.predict(points), strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert np.isfinite(mine).all()


def test_training_moves_every_number_of_the_base_kernel(tasks):
    with jax.enable_x64(True):
        surrogate = FPacohMap(num_steps=10, kernel=KERNEL).meta_train(tasks, key=jr.key(0))
    assert isinstance(surrogate, GPSurrogate) and isinstance(surrogate.process, EffectsProcess)
    assert isinstance(surrogate.process.plain.kernel, FeatureKernel)
    base = surrogate.process.plain.kernel.base
    assert type(base) is type(KERNEL)
    start = np.array(jax.tree.leaves(KERNEL))
    moved = np.array([float(leaf) for leaf in jax.tree.leaves(base)])
    assert len(start) == 3 and (np.abs(moved - start) > 1e-4).all()


def test_fixed_gp_with_a_base_kernel_matches_sklearn(tasks):
    method = FixedGP(0.3, 1.7, 1e-2, kernel=Matern(smoothness=1.5))
    surrogate = method.meta_train(tasks, key=jr.key(0))
    d = tasks.space.num_columns
    oracle = ConstantKernel(1.7) * SklearnMatern(0.3 * np.sqrt(d), nu=1.5)
    x = np.random.default_rng(0).normal(size=(6, d))
    with jax.enable_x64(True):
        matrix = surrogate.process.kernel.matrix(jnp.asarray(x))
    np.testing.assert_allclose(matrix, oracle(x), rtol=1e-9)


@pytest.mark.parametrize("method", [FixedGP(), FittedGP(num_steps=5)])
def test_base_kernel_unit_squared_exponential_is_the_default_kernel(method, tasks):
    same = dataclasses.replace(method, kernel=SquaredExponential())
    priors = [mp.learn(tasks, method=m, seed=0) for m in (method, same)]
    points, values = tasks.space.decode(tasks.x[3, :5]), tasks.y[3, :5]
    first, second = (p.condition(points, values).predict(points) for p in priors)
    np.testing.assert_allclose(first, second, rtol=1e-6)


@pytest.mark.slow
def test_base_kernel_configurations_with_different_switches_are_trained_at_once(tasks):
    methods = [FPacohMap(num_steps=5, offset=on, kernel=KERNEL) for on in (True, False)]
    together = meta_train_many(methods, tasks, keys=jr.split(jr.key(0), 2))
    assert isinstance(together, GPSurrogate) and isinstance(together.process, EffectsProcess)
    np.testing.assert_array_equal(together.process.has_offset, [True, False])
    assert together.process.has_offset.dtype == bool


def test_base_kernel_configurations_with_different_kernels_are_not_trained_at_once(tasks):
    methods = [FPacohMap(kernel=k) for k in (KERNEL, Constant() * Matern())]
    with pytest.raises(ValueError, match="equal sizes, but `kernel` takes the values"):
        meta_train_many(methods, tasks, keys=jr.split(jr.key(0), 2))


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_method_of_reads_a_kernel_from_json(method):
    text = json.dumps({"name": type(method).__name__, **settings_of(method)})
    assert method_of(json.loads(text)) == method


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": {"kernel": "Mattern"}}, "no kernel called 'Mattern'"),
        ({"kernel": {"base": 1}}, "{'base': 1} is not a kernel"),
        ({"hyper_prior": {"base": 1}}, "hyper_prior of FPacohMap is {'base': 1}, which is not a"),
        ({"offset": 1.0}, "offset of FPacohMap is 1.0, which is not true or false"),
        ({"kappa": True}, "kappa of FPacohMap is True, which is not a number"),
        ({"kernel": "Matern"}, "'Matern' is not a kernel"),
    ],
)
def test_method_of_rejects_damaged_settings(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        method_of({"name": "FPacohMap", **settings})


def test_switches_of_fpacoh_map_are_true_or_false():
    with pytest.raises(TypeError, match="warp"):
        FPacohMap(warp=1.0)  # pyright: ignore[reportArgumentType]


def test_settings_of_format_1_are_read_as_they_were_meant():
    old = {
        "name": "Guarded",
        "prior_trust": 0.95,
        "base": {"name": "FPacohMap", "kappa": 1.0, "offset": 1.0, "amplitude": 0.0, "warp": 0.0},
    }
    before = json.dumps(old)
    method = method_of(settings_of_format_1(old))
    assert method == mp.methods.Guarded(FPacohMap(kappa=1.0, offset=True))
    assert json.dumps(old) == before
    fixed = {"name": "VanillaGP", "lengthscale": 0.3}
    assert method_of(settings_of_format_1(fixed)) == FixedGP(lengthscale=0.3)


def test_posterior_covariance_is_sklearns(tasks):
    """In the user's units."""
    method = FixedGP(0.3, 1.7, 1e-2)
    points = tasks.space.decode(tasks.x[3, :3])
    new = tasks.space.decode(tasks.x[4, :4])
    prior = mp.learn(tasks, method=method, seed=0)
    assert isinstance(prior.surrogate, GPSurrogate)
    units = jax.tree.map(np.asarray, prior.surrogate.standardiser)
    x, z = ((tasks.space.encode(p) - units.x_mean) / units.x_std for p in (points, new))
    length = 0.3 * np.sqrt(tasks.space.num_columns)
    kernel = ConstantKernel(1.7, "fixed") * RBF(length, "fixed")
    without_fit: Any = None
    oracle: Any = GaussianProcessRegressor(kernel, alpha=1e-2 + 1e-8, optimizer=without_fit)
    oracle.fit(x, np.zeros(3))
    _, expected = oracle.predict(z, return_cov=True)
    found = prior.condition(points, tasks.y[3, :3]).covariance(new)
    np.testing.assert_allclose(found, float(units.y_std) ** 2 * expected, rtol=1e-6, atol=1e-9)
