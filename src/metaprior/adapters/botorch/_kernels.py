"""Covariance functions of `metaprior.belief` as torch modules that autograd sees through.

symbol      meaning                                                 shape
a, b        features of two sets of points                          (..., K, n, e), (..., K, k, e)
k(a, b)     covariances                                             (..., K, n, k)
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from metaprior.adapters.botorch._buffers import TorchRows, keep, torch_form
from metaprior.belief import (
    AbstractStackedKernel,
    OnFeatures,
    SharedKernel,
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


class TorchKernel(Module):
    """Kernels stacked along an axis."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """All covariances."""
        raise NotImplementedError


class TorchSquaredExponential(TorchKernel):
    r"""$\nu\, e^{-r^2 / 2}$."""

    lengthscale: Tensor
    variance: Tensor

    def __init__(self, kernel: StackedSquaredExponential):
        super().__init__()
        keep_scales(self, kernel)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return self.variance * torch.exp(-0.5 * distances(self, a, b).square())


class TorchMatern(TorchKernel):
    r"""The Matérn kernel with smoothness 1/2, 3/2 or 5/2."""

    lengthscale: Tensor
    variance: Tensor

    def __init__(self, kernel: StackedMatern):
        super().__init__()
        keep_scales(self, kernel)
        self.smoothness = kernel.smoothness

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        s = math.sqrt(2.0 * self.smoothness) * distances(self, a, b)
        bracket = {0.5: 1.0, 1.5: 1.0 + s, 2.5: 1.0 + s + s.square() / 3.0}[self.smoothness]
        return self.variance * bracket * torch.exp(-s)


class TorchRationalQuadratic(TorchKernel):
    r"""$\nu\, (1 + r^2 / 2 \alpha)^{-\alpha}$."""

    lengthscale: Tensor
    variance: Tensor
    mixture: Tensor

    def __init__(self, kernel: StackedRationalQuadratic):
        super().__init__()
        keep_scales(self, kernel)
        keep(self, mixture=kernel.mixture[:, None, None])

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        base = 0.5 * distances(self, a, b).square() / self.mixture
        return self.variance * torch.exp(-self.mixture * torch.log1p(base))


class TorchPeriodic(TorchKernel):
    """A squared exponential on circles of circumference `period`."""

    period: Tensor

    def __init__(self, kernel: StackedPeriodic):
        super().__init__()
        circle = StackedSquaredExponential(kernel.lengthscale[:, None], kernel.variance)
        self.circle = TorchSquaredExponential(circle)
        keep(self, period=kernel.period[:, None, :])

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return self.circle(self._on_circles(a), self._on_circles(b))

    def _on_circles(self, a: Tensor) -> Tensor:
        angle = 2.0 * math.pi * a / self.period
        return torch.cat([torch.sin(angle), torch.cos(angle)], dim=-1)


class TorchLinear(TorchKernel):
    r"""$\sum_j \sigma_j^2\, a_j b_j$."""

    variance: Tensor

    def __init__(self, kernel: StackedLinear):
        super().__init__()
        keep(self, variance=kernel.variance[:, None, :])

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return (a * self.variance) @ b.mT


class TorchConstantKernel(TorchKernel):
    """The same covariance everywhere."""

    variance: Tensor

    def __init__(self, kernel: StackedConstantKernel):
        super().__init__()
        keep(self, variance=kernel.variance[:, None, None])

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return self.variance.expand(*a.shape[:-1], b.shape[-2])


class TorchSum(TorchKernel):
    """The sum of two kernels."""

    def __init__(self, kernel: StackedSum):
        super().__init__()
        self.left, self.right = torch_kernel(kernel.left), torch_kernel(kernel.right)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return self.left(a, b) + self.right(a, b)


class TorchProduct(TorchKernel):
    """The product of two kernels."""

    def __init__(self, kernel: StackedProduct):
        super().__init__()
        self.left, self.right = torch_kernel(kernel.left), torch_kernel(kernel.right)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return self.left(a, b) * self.right(a, b)


class TorchStretch(TorchKernel):
    r"""$k_0(a / \ell, b / \ell)$."""

    lengthscale: Tensor

    def __init__(self, kernel: StackedStretch):
        super().__init__()
        self.base = torch_kernel(kernel.base)
        keep(self, lengthscale=kernel.lengthscale[:, None, :])

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return self.base(a / self.lengthscale, b / self.lengthscale)


class TorchSharedKernel(TorchKernel):
    """Kernels of which several members have the same, up to a factor."""

    factor: Tensor

    def __init__(self, kernel: SharedKernel):
        super().__init__()
        self.base, self.rows = torch_kernel(kernel.base), TorchRows(kernel.rows)
        keep(self, factor=kernel.factor[:, None, None])

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        values = self.base(self.rows.narrowed(a), self.rows.narrowed(b))
        return self.factor * self.rows.widened(values)


class TorchOnFeatures(TorchKernel):
    """A kernel that sees some of the features."""

    def __init__(self, kernel: OnFeatures):
        super().__init__()
        self.base = torch_kernel(kernel.base)
        self.seen = slice(kernel.start, kernel.stop)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return self.base(a[..., self.seen], b[..., self.seen])


def keep_scales(module: TorchKernel, kernel: Any) -> None:
    """Register lengthscales and variances of a radial kernel."""
    variance = kernel.variance[:, None, None]
    keep(module, lengthscale=kernel.lengthscale[:, None, :], variance=variance)


def distances(module: Any, a: Tensor, b: Tensor) -> Tensor:
    """Distances in units of the lengthscales, by differences: exact for points close to each other,
    with derivative 0 where two points are one."""
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(a / module.lengthscale, b / module.lengthscale, compute_mode=mode)


def torch_kernel(kernel: AbstractStackedKernel) -> TorchKernel:
    """The module with the covariances of `kernel`."""
    return torch_form(kernel, _KERNELS)


_KERNELS: dict[type, Callable[[Any], TorchKernel]] = {
    OnFeatures: TorchOnFeatures,
    SharedKernel: TorchSharedKernel,
    StackedConstantKernel: TorchConstantKernel,
    StackedLinear: TorchLinear,
    StackedMatern: TorchMatern,
    StackedPeriodic: TorchPeriodic,
    StackedProduct: TorchProduct,
    StackedRationalQuadratic: TorchRationalQuadratic,
    StackedSquaredExponential: TorchSquaredExponential,
    StackedStretch: TorchStretch,
    StackedSum: TorchSum,
}
