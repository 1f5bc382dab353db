"""From a kernel's settings, and its numbers in a prior's arrays, to the kernel.

`None` stands for the squared exponential, as in the settings of a method. A kernel of another
package has no form in NumPy.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from metaprior.belief._arrays import StackedArrays
from metaprior.belief._kernels import (
    AbstractStackedKernel,
    StackedConstantKernel,
    StackedLinear,
    StackedMatern,
    StackedPeriodic,
    StackedProduct,
    StackedRationalQuadratic,
    StackedSquaredExponential,
    StackedStretch,
    StackedSum,
)

KernelSettings = Mapping[str, Any] | None

DEFAULT: Mapping[str, Any] = {"kernel": "SquaredExponential"}
PARTS = ("left", "right")
# The numbers of each kernel, in the order in which they are parameters.
NUMBERS: dict[str, tuple[str, ...]] = {
    "Constant": ("log_variance",),
    "Linear": ("log_variance",),
    "Matern": ("log_lengthscale", "log_variance"),
    "Periodic": ("log_period", "log_lengthscale", "log_variance"),
    "RationalQuadratic": ("log_lengthscale", "log_variance", "log_mixture"),
    "SquaredExponential": ("log_lengthscale", "log_variance"),
}
COMPOSED: dict[str, Callable[..., AbstractStackedKernel]] = {
    "ProductKernel": StackedProduct,
    "SumKernel": StackedSum,
}


def has_stacked_kernel(settings: KernelSettings) -> bool:
    """Whether a kernel, and all of its parts, have a form in NumPy."""
    described = settings or DEFAULT
    if described["kernel"] in COMPOSED:
        return all(has_stacked_kernel(described[part]) for part in PARTS)
    return described["kernel"] in NUMBERS


def kernel_paths(settings: KernelSettings, path: str) -> list[str]:
    """Where the numbers of the kernel at `path` are, in the order of its parameters."""
    described = settings or DEFAULT
    name = described["kernel"]
    if name in COMPOSED:
        return [p for part in PARTS for p in kernel_paths(described[part], f"{path}.{part}")]
    return [f"{path}.{number}" for number in NUMBERS[name]]


def read_kernel(
    settings: KernelSettings, arrays: StackedArrays, path: str, dimension: int
) -> AbstractStackedKernel:
    """The kernel at `path`, of features of that dimension."""
    described = settings or DEFAULT
    name = described["kernel"]
    if name in COMPOSED:
        parts = (read_kernel(described[p], arrays, f"{path}.{p}", dimension) for p in PARTS)
        return COMPOSED[name](*parts)

    def one(number: str) -> np.ndarray:
        return np.exp(arrays.take_number(f"{path}.{number}"))

    def per_dimension(number: str) -> np.ndarray:
        return np.exp(arrays.take_numbers(f"{path}.{number}", dimension))

    match name:
        case "Constant":
            return StackedConstantKernel(one("log_variance"))
        case "Linear":
            return StackedLinear(per_dimension("log_variance"))
        case "Periodic":
            period = per_dimension("log_period")
            return StackedPeriodic(period, one("log_lengthscale"), one("log_variance"))
    lengthscale, variance = per_dimension("log_lengthscale"), one("log_variance")
    match name:
        case "Matern":
            return StackedMatern(lengthscale, variance, described["smoothness"])
        case "RationalQuadratic":
            return StackedRationalQuadratic(lengthscale, variance, one("log_mixture"))
        case _:
            return StackedSquaredExponential(lengthscale, variance)


def read_scaled_kernel(
    settings: KernelSettings, arrays: StackedArrays, path: str, dimension: int
) -> AbstractStackedKernel:
    r"""$\nu\, k_0(x / \ell, z / \ell)$ around the kernel $k_0$ of the settings."""
    if settings is None:
        return read_kernel(None, arrays, path, dimension)
    base = read_kernel(settings, arrays, f"{path}.base.base", dimension)
    lengthscale = np.exp(arrays.take_numbers(f"{path}.base.log_lengthscale", dimension))
    scale = StackedConstantKernel(np.exp(arrays.take_number(f"{path}.log_scale")))
    return StackedProduct(StackedStretch(base, lengthscale), scale)
