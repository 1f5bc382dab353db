"""Where the points of a tensor lie: in the unit cube of a space, or in the user's units.

Both kinds of coordinates are torch modules that bring points to the unit cube, and say what an
optimiser of acquisition functions needs to know: bounds, and the choices of categories.
"""

import abc
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch.nn.functional import one_hot

from metaprior.adapters.botorch._buffers import keep
from metaprior.data import Categorical, Dimension, Integer, Points, Real, Space


class AbstractCoordinates(Module):
    """Coordinates of points of `space`."""

    space: Space

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """Number of columns."""

    @property
    @abc.abstractmethod
    def bounds(self) -> Tensor:
        """Lowest and highest value of each column, (2, d), as `optimize_acqf` takes them."""

    @abc.abstractmethod
    def forward(self, X: Tensor) -> Tensor:
        """The points (..., d) in the unit cube."""

    @abc.abstractmethod
    def tensor(self, points: Points) -> Tensor:
        """Points in these coordinates, (n, d), for points as `Space.encode` takes them."""

    @abc.abstractmethod
    def points(self, X: Tensor) -> list[dict[str, Any]]:
        """Points by name, integers and categories snapped, for points (n, d)."""

    @abc.abstractmethod
    def fixed_features(self) -> list[dict[int, float]]:
        """All combinations of categories, by column, as `optimize_acqf_mixed` takes them; one that
        fixes nothing without categories."""

    def require_width(self, X: Tensor, name: str = "X") -> None:
        """Raise unless the points (..., d) have these columns."""
        if X.ndim < 1 or X.shape[-1] != self.width:
            kind, width = type(self).__name__, X.shape[-1] if X.ndim else 0
            raise ValueError(
                f"{name} has {width} columns where {kind} of {list(self.space.names)} has "
                f"{self.width}; make it with `{kind}(prior.space).tensor(points)`."
            )

    def snap(self, X: Tensor) -> Tensor:
        """The valid points that points (..., d) stand for: `post_processing_func` of
        `optimize_acqf`."""
        rows = X.detach().reshape(-1, X.shape[-1])
        return self.tensor(self.points(rows)).to(X).reshape(X.shape)


class UnitCube(AbstractCoordinates):
    """Columns as `Space.encode` makes them: positions between 0 and 1, and one column per choice of
    a category. The default."""

    def __init__(self, space: Space):
        super().__init__()
        self.space = space

    @property
    def width(self) -> int:
        return self.space.num_columns

    @property
    def bounds(self) -> Tensor:
        zeros = torch.zeros(self.space.num_columns, dtype=torch.float64)
        return torch.stack([zeros, zeros + 1.0])

    def forward(self, X: Tensor) -> Tensor:
        self.require_width(X)
        return X

    def tensor(self, points: Points) -> Tensor:
        return torch.tensor(self.space.encode(points))

    def points(self, X: Tensor) -> list[dict[str, Any]]:
        self.require_width(X)
        return self.space.decode(X.detach().cpu().numpy())

    def fixed_features(self) -> list[dict[int, float]]:
        columns = np.cumsum([0, *(d.num_columns for d in self.space.dimensions)]).tolist()
        choices = [
            [
                {start + i: float(i == chosen) for i in range(dimension.num_columns)}
                for chosen in range(dimension.num_columns)
            ]
            for start, dimension in zip(columns, self.space.dimensions, strict=False)
            if dimension.num_columns > 1
        ]
        return _combined(choices)


class UserUnits(AbstractCoordinates):
    """One column per dimension, in the order of the space's names: numbers as they are, categories
    as the index of the choice."""

    def __init__(self, space: Space):
        super().__init__()
        self.space = space
        named = zip(space.names, space.dimensions, strict=True)
        self.columns = ModuleList(_COLUMNS[type(d)](name, d) for name, d in named)

    @property
    def width(self) -> int:
        return len(self.columns)

    @property
    def bounds(self) -> Tensor:
        ends = [column.ends for column in self.columns]
        return torch.tensor(ends, dtype=torch.float64).T.contiguous()

    def forward(self, X: Tensor) -> Tensor:
        self.require_width(X)
        parts = [column(X[..., i]) for i, column in enumerate(self.columns)]
        return torch.cat(parts, dim=-1)

    def tensor(self, points: Points) -> Tensor:
        rows = self.space.decode(self.space.encode(points))
        named = zip(self.space.names, self.columns, strict=True)
        columns = [[column.number(row[name]) for row in rows] for name, column in named]
        return torch.tensor(columns, dtype=torch.float64).T.contiguous()

    def points(self, X: Tensor) -> list[dict[str, Any]]:
        return self.space.decode(self(X.detach().to(torch.float64)).cpu().numpy())

    def fixed_features(self) -> list[dict[int, float]]:
        indices = [i for i, d in enumerate(self.space.dimensions) if d.num_columns > 1]
        counts = [self.space.dimensions[i].num_columns for i in indices]
        choices = [
            [{i: float(chosen)} for chosen in range(count)]
            for i, count in zip(indices, counts, strict=True)
        ]
        return _combined(choices)


class NumberColumn(Module):
    """A real or integer dimension: its position in the unit interval, linear in the value or in its
    logarithm."""

    start: Tensor
    rate: Tensor
    first: Tensor

    def __init__(self, name: str, dimension: Real | Integer):
        super().__init__()
        self.ends = (float(dimension.low), float(dimension.high))
        self.log = dimension.log
        rows = [{name: dimension.low}, {name: dimension.high}]
        first, last = Space(**{name: dimension}).encode(rows)[:, 0]
        start, stop = np.log(self.ends) if self.log else self.ends
        keep(self, start=start, rate=(last - first) / (stop - start), first=first)

    def forward(self, values: Tensor) -> Tensor:
        t = values.log() if self.log else values
        return (self.first + (t - self.start) * self.rate).unsqueeze(-1)

    def number(self, value: Any) -> float:
        """The value as a number of the tensor."""
        return float(value)


class ChoiceColumn(Module):
    """A categorical dimension: the index of a choice becomes one column for each of them."""

    def __init__(self, name: str, dimension: Categorical):
        super().__init__()
        self.choices = dimension.choices
        self.ends = (0.0, len(self.choices) - 1.0)

    def forward(self, values: Tensor) -> Tensor:
        index = values.detach().round().long().clamp(0, len(self.choices) - 1)
        return one_hot(index, len(self.choices)).to(values)

    def number(self, value: Any) -> float:
        """The index of a choice."""
        return float(self.choices.index(value))


_COLUMNS: dict[type[Dimension], Callable[[str, Any], Module]] = {
    Real: NumberColumn,
    Integer: NumberColumn,
    Categorical: ChoiceColumn,
}


def _combined(choices: list[list[dict[int, float]]]) -> list[dict[int, float]]:
    """Every combination of one entry from each list."""
    return [
        {column: value for part in parts for column, value in part.items()}
        for parts in itertools.product(*choices)
    ]
