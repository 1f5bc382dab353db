"""Where the points of Ax's tensors lie: one column per parameter that an experiment can choose."""

from typing import Any

import torch
from ax.core.parameter import ChoiceParameter, FixedParameter, RangeParameter
from ax.core.search_space import SearchSpace
from torch import Tensor

from metaprior.adapters.botorch import AbstractCoordinates, UserUnits
from metaprior.data import Categorical, Dimension, Points, Space

Parameter = RangeParameter | ChoiceParameter | FixedParameter


class AxColumns(AbstractCoordinates):
    """Columns as Ax makes them with the transforms `RemoveFixed`, `ChoiceToNumericChoice` and
    `Log`: numbers as they are or as their decimal logarithms, choices of text as their index.

    - `space`: that of a prior.
    - `search_space`: of an experiment that was checked against it (see `require_space`).
    """

    def __init__(self, space: Space, search_space: SearchSpace):
        super().__init__()
        self.space = space
        self.in_units = UserUnits(space)
        parameters: dict[str, Any] = search_space.parameters
        self.parameters: list[Parameter] = [parameters[name] for name in space.names]
        order = [name for name in search_space.tunable_parameters if name in space.names]
        self.column = [order.index(n) if n in order else None for n in space.names]
        self.names = order
        for i, (dimension, parameter) in enumerate(self._both()):
            codes, indices = _codes(dimension, parameter)
            self.register_buffer(f"codes_{i}", torch.tensor(codes, dtype=torch.float64))
            self.register_buffer(f"indices_{i}", torch.tensor(indices, dtype=torch.float64))

    @property
    def width(self) -> int:
        return len(self.names)

    @property
    def bounds(self) -> Tensor:
        ends = torch.zeros(2, len(self.names), dtype=torch.float64)
        for i, (dimension, parameter) in enumerate(self._both()):
            column = self.column[i]
            if column is None:
                continue
            if isinstance(dimension, Categorical):
                codes = self.get_buffer(f"codes_{i}")
                ends[:, column] = torch.stack([codes.min(), codes.max()])
            else:
                low_high = torch.tensor([dimension.low, dimension.high], dtype=torch.float64)
                ends[:, column] = low_high.log10() if _is_log(parameter) else low_high
        return ends

    def forward(self, X: Tensor) -> Tensor:
        self.require_width(X)
        parts = [self._in_units(i, X) for i in range(len(self.column))]
        return self.in_units(torch.stack(parts, dim=-1))

    def _in_units(self, i: int, X: Tensor) -> Tensor:
        """Dimension `i` in the user's units; a choice as its index."""
        codes, indices = (self.get_buffer(f"{name}_{i}").to(X) for name in ("codes", "indices"))
        column = self.column[i]
        if column is None:
            return indices.expand(X.shape[:-1])
        if len(codes):
            apart = (X[..., column].detach().unsqueeze(-1) - codes).abs()
            return indices[apart.argmin(dim=-1)]
        return 10.0 ** X[..., column] if _is_log(self.parameters[i]) else X[..., column]

    def tensor(self, points: Points) -> Tensor:
        values = self.in_units.tensor(points)
        X = torch.zeros(len(values), len(self.names), dtype=torch.float64)
        for i, column in enumerate(self.column):
            if column is None:
                continue
            codes, indices = self.get_buffer(f"codes_{i}"), self.get_buffer(f"indices_{i}")
            if len(codes):
                X[:, column] = codes[(values[:, i, None] - indices).abs().argmin(dim=-1)]
            else:
                X[:, column] = values[:, i].log10() if _is_log(self.parameters[i]) else values[:, i]
        return X

    def points(self, X: Tensor) -> list[dict[str, Any]]:
        return self.space.decode(self(X.detach().to(torch.float64)).cpu().numpy())

    def fixed_features(self) -> list[dict[int, float]]:
        found: list[dict[int, float]] = [{}]
        for i, column in enumerate(self.column):
            codes = self.get_buffer(f"codes_{i}").tolist()
            if column is not None and codes:
                found = [{**each, column: code} for each in found for code in codes]
        return found

    def _both(self) -> list[tuple[Dimension, Parameter]]:
        return list(zip(self.space.dimensions, self.parameters, strict=True))


def _codes(dimension: Dimension, parameter: Parameter) -> tuple[list[float], list[float]]:
    """The numbers that stand for choices in a column, and the choices' indices in the dimension.

    Of a fixed parameter only the latter: its value in the units of the user, or its index.
    """
    if isinstance(parameter, FixedParameter):
        value: Any = parameter.value
        fixed = dimension.choices.index(value) if isinstance(dimension, Categorical) else value
        return [], [float(fixed)]
    if not isinstance(dimension, Categorical) or not isinstance(parameter, ChoiceParameter):
        return [], []
    values: list[Any] = parameter.values
    codes = [float(v) if parameter.is_numeric else float(i) for i, v in enumerate(values)]
    return codes, [float(dimension.choices.index(value)) for value in values]


def _is_log(parameter: Parameter) -> bool:
    return not isinstance(parameter, FixedParameter) and bool(parameter.log_scale)
