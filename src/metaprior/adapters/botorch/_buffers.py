"""Arrays of `metaprior.belief` as buffers of torch modules, and parts that several members share.

Every buffer has its members at axis 0; what is between it and the axes of a point is broadcast.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from metaprior.belief import SharedRows


def keep(module: Module, **arrays: Any) -> None:
    """Register arrays and numbers as buffers of a module, by name."""
    for name, array in arrays.items():
        module.register_buffer(name, torch.tensor(np.asarray(array)))


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
