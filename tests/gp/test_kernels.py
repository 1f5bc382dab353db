"""Kernels and means against sklearn and networks written out in NumPy."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from metaprior.gp import (
    ConstantMean,
    FeatureKernel,
    NeuralMean,
    ScaledKernel,
    SquaredExponential,
)

VARIANCE = 1.7


def squared_exponential(variance: float, lengthscale: Any) -> Any:
    """sklearn's kernel."""
    return ConstantKernel(variance) * RBF(lengthscale)


def points(num: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(num, d))


def network(inputs: int, outputs: int) -> eqx.nn.MLP:
    return eqx.nn.MLP(inputs, outputs, 5, 2, jnp.tanh, key=jax.random.key(inputs))


def numpy_network(mlp: eqx.nn.MLP, x: np.ndarray) -> np.ndarray:
    """The same network by hand: tanh between affine layers, none after the last."""
    for index, layer in enumerate(mlp.layers):
        assert layer.bias is not None
        x = x @ np.asarray(layer.weight).T + np.asarray(layer.bias)
        if index < len(mlp.layers) - 1:
            x = np.tanh(x)
    return x


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("one_lengthscale", [True, False])
def test_squared_exponential_matches_sklearn(d, one_lengthscale):
    lengthscale = 0.7 if one_lengthscale else np.linspace(0.4, 1.9, d)
    kernel = SquaredExponential(jnp.log(jnp.asarray(lengthscale)), jnp.log(VARIANCE))
    oracle = squared_exponential(VARIANCE, lengthscale)
    x, z = points(6, d), points(4, d, seed=1)
    np.testing.assert_allclose(kernel.matrix(jnp.asarray(x)), oracle(x), rtol=1e-10)
    np.testing.assert_allclose(kernel.gram(jnp.asarray(x), jnp.asarray(z)), oracle(x, z), rtol=1e-9)
    one = kernel(jnp.asarray(x[2]), jnp.asarray(z[3]))
    np.testing.assert_allclose(one, oracle(x, z)[2, 3], rtol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_feature_kernel_is_the_base_kernel_on_features(d):
    features = network(d, 3)
    base = SquaredExponential(jnp.log(0.5), jnp.log(VARIANCE))
    kernel, oracle = FeatureKernel(base, features), squared_exponential(VARIANCE, 0.5)
    x, z = points(6, d), points(4, d, seed=1)
    phi_x, phi_z = numpy_network(features, x), numpy_network(features, z)
    np.testing.assert_allclose(kernel.matrix(jnp.asarray(x)), oracle(phi_x), rtol=1e-9)
    gram = kernel.gram(jnp.asarray(x), jnp.asarray(z))
    np.testing.assert_allclose(gram, oracle(phi_x, phi_z), rtol=1e-9)


def test_a_scaled_kernel_multiplies_by_its_scale():
    base = SquaredExponential(jnp.log(0.5), jnp.log(VARIANCE))
    kernel = ScaledKernel(ScaledKernel(base, jnp.log(3.0)), jnp.log(0.5))
    x = points(5, 2)
    oracle = squared_exponential(1.5 * VARIANCE, 0.5)
    np.testing.assert_allclose(kernel.matrix(jnp.asarray(x)), oracle(x), rtol=1e-10)


_matrix = jax.jit(lambda kernel, x: kernel.matrix(x))


@settings(deadline=None, max_examples=100)
@given(
    seed=st.integers(0, 2**31 - 1),
    log_lengthscale=st.floats(-5, 5),
    log_variance=st.floats(-5, 5),
)
def test_covariance_matrices_are_symmetric_and_positive(seed, log_lengthscale, log_variance):
    kernel = SquaredExponential(jnp.asarray(log_lengthscale), jnp.asarray(log_variance))
    x = points(8, 2, seed)
    x[3] = x[0]  # Repeated points are allowed.
    matrix = np.asarray(_matrix(kernel, jnp.asarray(x)))
    np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-14 * np.exp(log_variance))
    np.testing.assert_allclose(np.diag(matrix), np.exp(log_variance), rtol=1e-12)
    assert np.linalg.eigvalsh(matrix).min() > -1e-13 * np.exp(log_variance)


def test_a_matrix_evaluates_the_features_once_a_point():
    """The products of the network's layers grow with the points, not with their pairs."""
    kernel = FeatureKernel(SquaredExponential(jnp.log(0.5), jnp.log(1.0)), network(2, 3))

    def flops(num: int) -> float:
        lowered = jax.jit(lambda x: kernel.matrix(x)).lower(jnp.zeros((num, 2)))
        cost = lowered.compile().cost_analysis()
        assert isinstance(cost, dict)
        return cost["flops"]

    # 5 (2 -> 5), 25 (5 -> 5) and 15 (5 -> 3) multiplications a point, far fewer than 20 a pair.
    num = 64
    assert flops(num) < num * 500 + num**2 * 20


def test_means_are_what_they_say():
    x = points(6, 3)
    constant = ConstantMean(jnp.asarray(0.3))
    assert np.asarray(jax.vmap(constant)(jnp.asarray(x))).tolist() == [0.3] * 6
    mlp = network(3, 1)
    got = jax.vmap(NeuralMean(mlp))(jnp.asarray(x))
    np.testing.assert_allclose(got, numpy_network(mlp, x)[:, 0], rtol=1e-12)
