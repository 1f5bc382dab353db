"""Parts of `metaprior.belief` as torch modules: their arrays as buffers, and parts that are shared.

Every buffer has its members at axis 0; what is between it and the axes of a point is broadcast.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from metaprior.belief import SharedRows

Form = TypeVar("Form", bound=Module)


def keep(module: Module, **arrays: Any) -> None:
    """Register arrays and numbers as buffers of a module, by name."""
    for name, array in arrays.items():
        module.register_buffer(name, torch.tensor(np.asarray(array)))


def torch_form(part: Any, forms: Mapping[type, Callable[[Any], Form]]) -> Form:
    """The module that does in torch what `part` does, among those known by its class."""
    if type(part) not in forms:
        raise ValueError(
            f"{type(part).__name__}, a part of this prior, has no form in torch; use "
            "`metaprior.Optimizer(prior)`, or learn the prior with `metaprior.learn(tasks)`."
        )
    return forms[type(part)](part)


class TorchRows(Module):
    """Which part of a smaller stack each member has; tensors have their members at axis -3."""

    index: Tensor
    first: Tensor

    def __init__(self, rows: SharedRows):
        super().__init__()
        keep(self, index=rows.index, first=rows.first)

    def narrowed(self, each: Tensor) -> Tensor:
        """What one member of each part sees: all that have the part see the same."""
        return each.index_select(-3, self.first)

    def widened(self, values: Tensor) -> Tensor:
        """The values of every member's part."""
        return values.index_select(-3, self.index)
