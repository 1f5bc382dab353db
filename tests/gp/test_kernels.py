"""Kernels and means against sklearn and networks written out in NumPy."""

from typing import Any

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sklearn_kernels
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

from metaprior.gp import (
    AbstractKernel,
    Constant,
    ConstantMean,
    FeatureKernel,
    Linear,
    Matern,
    NeuralMean,
    Periodic,
    RationalQuadratic,
    ScaledKernel,
    SquaredExponential,
    StretchedKernel,
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


def test_scaled_kernel_multiplies_by_its_scale():
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
def test_kernel_matrices_are_symmetric_and_positive(seed, log_lengthscale, log_variance):
    kernel = SquaredExponential(jnp.asarray(log_lengthscale), jnp.asarray(log_variance))
    x = points(8, 2, seed)
    x[3] = x[0]  # Repeated points are allowed.
    matrix = np.asarray(_matrix(kernel, jnp.asarray(x)))
    np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-14 * np.exp(log_variance))
    np.testing.assert_allclose(np.diag(matrix), np.exp(log_variance), rtol=1e-12)
    assert np.linalg.eigvalsh(matrix).min() > -1e-13 * np.exp(log_variance)


def test_kernel_matrix_evaluates_the_features_once_per_point():
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


def test_means_by_hand():
    x = points(6, 3)
    constant = ConstantMean(jnp.asarray(0.3))
    assert np.asarray(jax.vmap(constant)(jnp.asarray(x))).tolist() == [0.3] * 6
    mlp = network(3, 1)
    got = jax.vmap(NeuralMean(mlp))(jnp.asarray(x))
    np.testing.assert_allclose(got, numpy_network(mlp, x)[:, 0], rtol=1e-12)


def sklearn_linear(variance: float) -> Any:
    return ConstantKernel(variance) * DotProduct(sigma_0=0.0)


ORACLES: dict[str, tuple[AbstractKernel, Any]] = {
    "rational quadratic": (
        RationalQuadratic(np.log(0.8), np.log(VARIANCE), np.log(1.3)),
        ConstantKernel(VARIANCE) * sklearn_kernels.RationalQuadratic(0.8, 1.3),
    ),
    "linear": (Linear(np.log(VARIANCE)), sklearn_linear(VARIANCE)),
    "constant": (Constant(np.log(VARIANCE)), ConstantKernel(VARIANCE)),
    "stretched": (
        StretchedKernel(Matern(smoothness=1.5), np.log(0.6)),
        sklearn_kernels.Matern(0.6, nu=1.5),
    ),
    "sum": (
        SquaredExponential(np.log(0.5)) + Linear(np.log(0.3)),
        RBF(0.5) + sklearn_linear(0.3),
    ),
    "product": (
        Matern(np.log(0.7)) * RationalQuadratic(),
        sklearn_kernels.Matern(0.7, nu=2.5) * sklearn_kernels.RationalQuadratic(1.0, 1.0),
    ),
    "sum of products": (
        Constant(np.log(2.0)) * Matern(np.log(0.7), smoothness=0.5)
        + Linear(np.log(0.3)) * SquaredExponential()
        + Constant(np.log(0.1)),
        ConstantKernel(2.0) * sklearn_kernels.Matern(0.7, nu=0.5)
        + sklearn_linear(0.3) * RBF(1.0)
        + ConstantKernel(0.1),
    ),
}


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("name", ORACLES)
def test_kernels_and_their_compositions_match_sklearn(name, d):
    kernel, oracle = ORACLES[name]
    x, z = points(6, d), points(4, d, seed=1)
    np.testing.assert_allclose(kernel.matrix(jnp.asarray(x)), oracle(x), rtol=1e-9)
    np.testing.assert_allclose(kernel.gram(jnp.asarray(x), jnp.asarray(z)), oracle(x, z), rtol=1e-9)


def test_linear_kernel_takes_one_variance_per_dimension():
    x = points(5, 2)
    matrix = Linear(np.log(np.array([0.5, 3.0]))).matrix(jnp.asarray(x))
    np.testing.assert_allclose(matrix, x @ np.diag([0.5, 3.0]) @ x.T, rtol=1e-12)


def test_kernels_compose_with_learned_features():
    features = network(2, 3)
    kernel = FeatureKernel(SquaredExponential(np.log(0.5)) + Linear(np.log(0.3)), features)
    x = points(6, 2)
    phi = numpy_network(features, x)
    expected = (RBF(0.5) + sklearn_linear(0.3))(phi)
    np.testing.assert_allclose(kernel.matrix(jnp.asarray(x)), expected, rtol=1e-9)
    batch = kernel.embed_batch(jnp.asarray(x).reshape(2, 3, 2))
    for i, rows in enumerate((slice(0, 3), slice(3, 6))):
        part = jax.tree.map(lambda leaf, i=i: leaf[i], batch)
        got = kernel.pairwise(part, part)
        np.testing.assert_allclose(got, expected[rows, rows], rtol=1e-9)


def test_kernel_does_not_add_to_a_number():
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = SquaredExponential() + 1.0  # pyright: ignore[reportOperatorIssue]


COMPOSED = Constant(0.3) * Matern(-0.2, 0.1) + Linear(-1.0) * RationalQuadratic(0.1, 0.0, 0.4)
COMPOSED = COMPOSED + Periodic(0.5, 0.2, -0.3)


def test_kernel_gradients_of_compositions_match_finite_differences():
    flat, unflatten = jax.flatten_util.ravel_pytree(jax.tree.map(jnp.asarray, COMPOSED))
    x, z = jnp.asarray(points(1, 2)[0]), jnp.asarray(points(1, 2, seed=1)[0])

    @jax.jit
    def value(numbers, x):
        return unflatten(numbers)(x, z)

    by_numbers, by_point = jax.jit(jax.grad(value, (0, 1)))(flat, x)
    step = 1e-6
    for i, found in enumerate(by_numbers):
        moved = step * jnp.eye(len(flat))[i]
        slope = (value(flat + moved, x) - value(flat - moved, x)) / (2 * step)
        np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-8)
    for i, found in enumerate(by_point):
        moved = step * jnp.eye(2)[i]
        slope = (value(flat, x + moved) - value(flat, x - moved)) / (2 * step)
        np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-8)


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**31 - 1), numbers=st.lists(st.floats(-2, 2), min_size=9, max_size=9))
def test_kernel_sums_and_products_are_positive_semidefinite(seed, numbers):
    leaves, structure = jax.tree.flatten(COMPOSED)
    assert len(leaves) == len(numbers) + 1
    kernel = jax.tree.unflatten(structure, [jnp.asarray(v) for v in [*numbers, 0.0]])
    x = points(8, 2, seed)
    x[3] = x[0]
    matrix = np.asarray(_matrix(kernel, jnp.asarray(x)))
    scale = np.diag(matrix).max()
    np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-14 * scale)
    assert np.linalg.eigvalsh(matrix).min() > -1e-13 * scale
