"""Kernels written as JSON and read back."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metaprior.gp import (
    AbstractKernel,
    Constant,
    FeatureKernel,
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
    kernel_of,
    kernel_settings,
    register_kernel,
)

KERNELS = {
    "squared exponential": SquaredExponential(-0.3, 0.2),
    "matern": Matern(0.1, 0.2, 0.5),
    "periodic": Periodic(0.3, 0.1, -1.0),
    "rational quadratic": RationalQuadratic(0.1, 0.2, 0.3),
    "linear by dimension": Linear(np.array([0.1, 0.2])),
    "arrays": SquaredExponential(jnp.array([0.1, 0.7]), jnp.asarray(0.3)),
    "composed": (Matern(0.5, smoothness=1.5) + Constant(-1.0)) * Linear(0.2) + Periodic(),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_of_reads_what_kernel_settings_wrote(name):
    kernel = KERNELS[name]
    text = json.dumps(kernel_settings(kernel))
    read = kernel_of(json.loads(text))
    assert json.dumps(kernel_settings(read)) == text
    x = jnp.asarray(np.random.default_rng(0).normal(size=(5, 2)))
    np.testing.assert_array_equal(read.matrix(x), kernel.matrix(x))


def test_kernel_settings_are_readable():
    assert kernel_settings(Matern(0.5, smoothness=1.5) + Constant()) == {
        "kernel": "SumKernel",
        "left": {
            "kernel": "Matern",
            "log_lengthscale": 0.5,
            "log_variance": 0.0,
            "smoothness": 1.5,
        },
        "right": {"kernel": "Constant", "log_variance": 0.0},
    }


def nested(depth: int) -> dict:
    inner = {"kernel": "Constant", "log_variance": 0.0}
    for _ in range(depth):
        inner = {"kernel": "SumKernel", "left": inner, "right": inner}
    return inner


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        ("Matern", "'Matern' is not a kernel"),
        ({"name": "Matern"}, "is not a kernel"),
        ({"kernel": ["Matern"]}, "is not a kernel"),
        ({"kernel": "os"}, "no kernel called 'os' here"),
        ({"kernel": "Constant"}, r"fields \['log_variance'\], not \[\]"),
        ({"kernel": "Constant", "log_variance": 0, "x": 1}, "has the fields"),
        (
            {"kernel": "Constant", "log_variance": None},
            "log_variance of the kernel Constant is None",
        ),
        ({"kernel": "Linear", "log_variance": ["a"]}, "which is not a number"),
        ({"kernel": "Linear", "log_variance": [[1.0]]}, "which is not a number"),
        (nested(20), "nested more than 16 deep"),
    ],
)
def test_kernel_of_rejects_damaged_settings(damaged, message):
    with pytest.raises(ValueError, match=message):
        kernel_of(damaged)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (SquaredExponential(float("nan")), "log_lengthscale of SquaredExponential is nan"),
        (SquaredExponential() + Constant(float("inf")), "log_variance of Constant is inf"),
    ],
)
def test_kernel_settings_reject_numbers_that_json_has_not(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel_settings(kernel)


class Cosine(AbstractKernel):
    log_period: float = 0.0

    def embed(self, x):
        angle = 2 * jnp.pi * x[0] * jnp.exp(-self.log_period)
        return jnp.stack([jnp.sin(angle), jnp.cos(angle)])

    def between(self, a, b):
        return a @ b


def test_register_kernel_lets_a_kernel_of_ones_own_be_saved():
    with pytest.raises(ValueError, match="class Cosine, which could not be saved.*register_kernel"):
        kernel_settings(Cosine() + Constant())
    assert register_kernel(Cosine) is Cosine
    read = kernel_of(kernel_settings(Cosine(0.3) + Constant()))
    assert read == Cosine(0.3) + Constant()


def test_register_kernel_rejects_a_name_that_is_taken():
    taken = type("Matern", (Cosine,), {})
    with pytest.raises(ValueError, match="already a kernel called 'Matern'"):
        register_kernel(taken)


def test_kernel_settings_reject_a_kernel_with_networks():
    network = eqx.nn.MLP(2, 1, 3, 1, key=jax.random.key(0))
    with pytest.raises(ValueError, match="class FeatureKernel, which could not be saved"):
        kernel_settings(FeatureKernel(SquaredExponential(), network))
