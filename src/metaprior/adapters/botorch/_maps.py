"""Networks, warps and views of `metaprior.belief` as torch modules that autograd sees through.

Points have shape (..., K, n, d) with any batch before K, the number of members.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module, ModuleList

from metaprior.adapters.botorch._buffers import TorchRows, keep, torch_form
from metaprior.adapters.botorch._kernels import torch_kernel
from metaprior.belief import (
    EXPONENTIAL,
    LOGARITHM,
    AbstractMap,
    BesideInputs,
    MeanMap,
    SharedMap,
    StackedConstant,
    StackedNetwork,
    StackedWarp,
    Unchanged,
    UnitView,
)


class TorchMap(Module):
    """Maps of points (..., K, n, d) to values (..., K, n, o)."""

    def forward(self, z: Tensor) -> Tensor:
        """The values at `z`."""
        raise NotImplementedError


class TorchNetwork(TorchMap):
    r"""$h_{i+1} = \tanh(W_i h_i + b_i)$, the last layer linear unless it is bent as well."""

    def __init__(self, network: StackedNetwork):
        super().__init__()
        self.layers = ModuleList()
        for weight, bias in zip(network.weights, network.biases, strict=True):
            layer = Module()
            keep(layer, weight=weight.transpose(0, 2, 1).copy(), bias=bias[:, None, :])
            self.layers.append(layer)
        self.num_bent = len(self.layers) - (not network.ends_bent)

    def forward(self, z: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            z = z @ layer.weight + layer.bias
            z = torch.tanh(z) if i < self.num_bent else z
        return z


class TorchConstant(TorchMap):
    """The same value everywhere."""

    value: Tensor

    def __init__(self, constant: StackedConstant):
        super().__init__()
        keep(self, value=constant.value[:, None, None])

    def forward(self, z: Tensor) -> Tensor:
        return self.value.expand(*z.shape[:-1], 1)


class TorchIdentity(TorchMap):
    """The points themselves."""

    def __init__(self, unchanged: Unchanged):
        super().__init__()

    def forward(self, z: Tensor) -> Tensor:
        return z


class TorchWarp(TorchMap):
    r"""$w(x_j) = \sinh(e^{t_j} \operatorname{arsinh} x_j + s_j) - \sinh s_j$ where it is on."""

    tail: Tensor
    skew: Tensor
    is_on: Tensor

    def __init__(self, warp: StackedWarp):
        super().__init__()
        keep(
            self,
            tail=np.exp(warp.log_tail)[:, None, :],
            skew=warp.skew[:, None, :],
            is_on=warp.is_on[:, None, None],
        )

    def forward(self, z: Tensor) -> Tensor:
        bent = torch.sinh(self.tail * torch.asinh(z) + self.skew) - torch.sinh(self.skew)
        return torch.where(self.is_on, bent, z)


class TorchPastMeans(TorchMap):
    r"""$b + \sum_j \alpha_j\, k(x_j, z)$: posterior means of past tasks."""

    x: Tensor
    alpha: Tensor
    constant: Tensor

    def __init__(self, means: MeanMap):
        super().__init__()
        self.kernel = torch_kernel(means.kernel)
        keep(
            self,
            x=means.x,
            alpha=means.alpha[..., None],
            constant=means.constant[:, None, None],
        )

    def forward(self, z: Tensor) -> Tensor:
        return self.constant + self.kernel(z, self.x) @ self.alpha


class TorchSharedMap(TorchMap):
    """Maps of which several members have the same."""

    def __init__(self, shared: SharedMap):
        super().__init__()
        self.base, self.rows = torch_map(shared.base), TorchRows(shared.rows)

    def forward(self, z: Tensor) -> Tensor:
        return self.rows.widened(self.base(self.rows.narrowed(z)))


class TorchBesideInputs(TorchMap):
    """The values of other maps, and after them the points themselves."""

    def __init__(self, both: BesideInputs):
        super().__init__()
        self.base = torch_map(both.base)

    def forward(self, z: Tensor) -> Tensor:
        return torch.cat([self.base(z), z], dim=-1)


class TorchView(Module):
    """Where the points (..., n, w) of a window lie in the whole space."""

    matrix: Tensor
    offset: Tensor
    grows: Tensor
    is_log: Tensor
    lowest: Tensor
    start: Tensor
    width: Tensor

    def __init__(self, view: UnitView):
        super().__init__()
        is_log = view.bend == LOGARITHM
        keep(
            self,
            matrix=view.matrix.T.copy(),
            offset=view.offset,
            grows=view.bend == EXPONENTIAL,
            is_log=is_log,
            lowest=np.exp(np.where(is_log, view.start, 0.0)),
            start=view.start,
            width=view.width,
        )

    def forward(self, u: Tensor) -> Tensor:
        t = u @ self.matrix + self.offset
        ones = torch.ones_like(t)
        bent = torch.where(self.grows, torch.exp(torch.where(self.grows, t, ones)), t)
        positive = torch.where(self.is_log, torch.maximum(t, self.lowest), ones)
        bent = torch.where(self.is_log, torch.log(positive), bent)
        return (bent - self.start) / self.width


def torch_map(part: AbstractMap) -> TorchMap:
    """The module that maps points as `part` does."""
    return torch_form(part, _MAPS)


_MAPS: dict[type, Callable[[Any], TorchMap]] = {
    BesideInputs: TorchBesideInputs,
    MeanMap: TorchPastMeans,
    SharedMap: TorchSharedMap,
    StackedConstant: TorchConstant,
    StackedNetwork: TorchNetwork,
    StackedWarp: TorchWarp,
    Unchanged: TorchIdentity,
}
