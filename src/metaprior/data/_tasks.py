"""Tasks: many runs over one space, padded to one length and masked; building and checking them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

from metaprior.data._features import (
    FeatureValue,
    TaskFeatures,
    checked_tasks,
    features_of,
)
from metaprior.data._points import Complaint, complaint, finite_numbers
from metaprior.data._quantity import Quantity
from metaprior.data._space import Space
from metaprior.words import shortened

# What a value is never below and never above.
Bounds: TypeAlias = tuple[float | int, float | int]

# Beyond this size, the squares of values are beyond what float64 can compute with.
LARGEST_VALUE = 1e150

_SIGNS = {"maximize": 1.0, "minimize": -1.0}


def direction_sign(direction: str) -> float:
    """What values are multiplied by so that larger is better: 1 to maximise, -1 to minimise."""
    if not isinstance(direction, str) or direction not in _SIGNS:
        raise ValueError(
            f"Unknown direction {shortened(direction)}; give 'maximize' or 'minimize'."
        )
    return _SIGNS[direction]


def padded_length(length: int) -> int:
    """`length` rounded up, so that runs of similar lengths share one compiled function.

    Steps are an eighth of the power of two below `length`, at least 4: few shapes, and from 32 on
    at most an eighth of the rows are padding. Never 0, since a run may still grow.
    """
    if length < 0:
        raise ValueError(f"A run cannot have {length} points; give 0 or more.")
    power_of_two = 1 << max(length, 1).bit_length() - 1
    step = max(4, power_of_two // 8)
    return max(step, -(-length // step) * step)


@dataclass(frozen=True, eq=False, repr=False)
class Tasks:
    """The meta-training set: run `i` is the rows of `x[i]`, `y[i]` where `mask[i]` is true.

    - `x`: points as models see them, `space.embed` of those of the unit cube; padded rows are 0.
    - `y`: values, larger is better whatever `direction` says; padded entries are 0.
    - `mask`: which rows are observations; they come first, in the order of the run.
    - `direction`: `"maximize"` or `"minimize"`, what the user does with the values.
    - `feature_values`: features of each task, by name; empty if there are none.
    - `value_bounds`: what a value is never below and never above, in the user's sign; `None` if
      there is no such limit.
    - `names`: what the user calls each run; empty if they have no names.
    - `quantity`: what the value is called, and its unit.
    - `space_of_points`: the space without features of tasks, if points have columns of them.
    """

    space: Space
    x: Float[np.ndarray, "n capacity num_inputs"]
    y: Float[np.ndarray, "n capacity"]
    mask: Bool[np.ndarray, "n capacity"]
    direction: str = "maximize"
    feature_values: tuple[dict[str, FeatureValue | None], ...] = ()
    value_bounds: tuple[float, float] | None = None
    names: tuple[str, ...] = ()
    quantity: Quantity = Quantity()
    space_of_points: Space | None = None

    def __post_init__(self) -> None:
        direction_sign(self.direction)
        for name in ("x", "y", "mask"):
            array = getattr(self, name).view()  # the caller's own array stays writeable
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def from_runs(
        cls,
        runs: Iterable[Any],
        *,
        space: Space,
        direction: str = "maximize",
        features: Iterable[Any] | None = None,
        value_bounds: Bounds | None = None,
        names: Iterable[str] | None = None,
        quantity: Quantity | None = None,
    ) -> "Tasks":
        """Tasks from past runs, each a pair `(points, values)` in the user's units.

        - `points`: anything that `space.encode` takes.
        - `values`: one number per point, in the same order.
        - `direction`: whether to `"maximize"` or `"minimize"` the values.
        - `features`: features of each task, one dict per run, such as
          `{"instances": 65196}`: numbers, texts or bools. One that is missing is not known.
        - `value_bounds`: lowest and highest possible value, such as `(0, 100)` for a yield in per
          cent.
        - `names`: what you call each run, for findings and reports.
        - `quantity`: what the value is called, and its unit: `Quantity("yield", "%")`.
        """
        if not isinstance(space, Space):
            raise TypeError(f"`space` is {shortened(space)}; give a metaprior Space.")
        sign = direction_sign(direction)
        if not isinstance(runs, Iterable):
            raise TypeError(f"`runs` is {shortened(runs)}; give a list of (points, values) pairs.")
        checked = [_check_run(index, run, space) for index, run in enumerate(runs)]
        if not checked:
            raise ValueError("Received no runs; give at least one (points, values) pair.")
        values_of_features = (
            () if features is None else checked_tasks(features, space, len(checked))
        )
        features_of(values_of_features)  # raises if a feature is of several kinds
        bounds = None if value_bounds is None else checked_bounds(value_bounds)
        if bounds is not None:
            for index, (_, values) in enumerate(checked):
                require_within(bounds, values, complaint(f"task {index}", "y"))
        capacity = padded_length(max(len(values) for _, values in checked))
        x = np.zeros((len(checked), capacity, space.num_inputs))
        y = np.zeros((len(checked), capacity))
        mask = np.zeros((len(checked), capacity), bool)
        for i, (points, values) in enumerate(checked):
            x[i, : len(values)] = space.embed(points)
            y[i, : len(values)] = sign * values
            mask[i, : len(values)] = True
        called = () if names is None else _checked_names(names, len(checked))
        quantity = _checked_quantity(quantity)
        _require_moderate(y[mask])
        return cls(space, x, y, mask, direction, values_of_features, bounds, called, quantity)

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        lengths = self.lengths
        points = f"{lengths.min()} to {lengths.max()}" if len(self) else "no"
        names = self.features.names
        known = f", features {', '.join(names)}" if names else ""
        return f"Tasks({len(self)} runs of {points} points, {self.direction}, {self.space}{known})"

    @property
    def num_tasks(self) -> int:
        return len(self)

    @property
    def capacity(self) -> int:
        """The number of rows, observations and padding, of every task."""
        return self.y.shape[1]

    @property
    def lengths(self) -> Int[np.ndarray, " n"]:
        """The number of observations of each task."""
        return self.mask.sum(axis=1)

    @cached_property
    def features(self) -> TaskFeatures:
        """The features of the tasks: their kinds, and their scales over these tasks."""
        return features_of(self.feature_values)

    def with_feature_columns(self, features: TaskFeatures) -> "Tasks":
        """The tasks as learned models see them: each point has the columns of `features` too."""
        codes = np.stack([features.code(values) for values in self.feature_values])
        columns = np.where(self.mask[:, :, None], codes[:, None, :], 0.0)
        # The columns of dimensions come first, as in a space that has the features, too.
        points, sets = np.split(self.x, [self.space.num_coded], axis=2)
        x = np.concatenate([points, columns, sets], axis=2)
        space = features.extended(self.space)
        return replace(self, space=space, x=x, feature_values=(), space_of_points=self.space)

    @property
    def point_columns(self) -> Int[np.ndarray, " num_inputs"]:
        """The columns that points have without features of tasks."""
        space = self.space_of_points or self.space
        return space.columns_of_points(self.x.shape[2])

    def run(self, index: int) -> tuple[list[dict[str, Any]], Float[np.ndarray, " m"]]:
        """Run `index` as it was given: its points, and its values with the user's sign."""
        (index,) = self._indices([index])
        rows = self.mask[index]
        points = self.space.decode(self.space.points_of(self.x[index][rows]))
        return points, direction_sign(self.direction) * self.y[index][rows]

    def subset(self, indices: Any) -> "Tasks":
        """The tasks at `indices` (integers, or one bool for each task), with the same capacity."""
        rows = self._indices(indices)
        return replace(
            self,
            x=self.x[rows],
            y=self.y[rows],
            mask=self.mask[rows],
            feature_values=tuple(self.feature_values[row] for row in rows if self.feature_values),
            names=tuple(self.names[row] for row in rows if self.names),
        )

    def join(self, other: "Tasks") -> "Tasks":
        """The tasks of `self`, then those of `other`; also written `self + other`."""
        if self.space != other.space:
            raise ValueError(
                f"Tasks over different spaces cannot be joined: {self.space} and {other.space}; "
                "build both over one space."
            )
        if self.direction != other.direction:
            raise ValueError(
                f"Tasks of directions {self.direction!r} and {other.direction!r} cannot be joined; "
                "build both with one direction."
            )
        if self.value_bounds != other.value_bounds:
            raise ValueError(
                f"Tasks whose values have the bounds {self.value_bounds} and {other.value_bounds} "
                "cannot be joined; build both with the same bounds."
            )
        capacity = max(self.capacity, other.capacity)
        x, y, mask = (
            np.concatenate([_pad(getattr(tasks, name), capacity) for tasks in (self, other)])
            for name in ("x", "y", "mask")
        )
        known: tuple[dict[str, FeatureValue | None], ...] = ()
        if self.feature_values or other.feature_values:
            known = (*self._known_features(), *other._known_features())
        features_of(known)  # raises if a feature is of another kind there
        names = (*self._known_names(), *other._known_names()) if self.names or other.names else ()
        return replace(self, x=x, y=y, mask=mask, feature_values=known, names=names)

    def __add__(self, other: "Tasks") -> "Tasks":
        return self.join(other) if isinstance(other, Tasks) else NotImplemented

    def require_several(self) -> "Tasks":
        """These tasks, if there are at least 2 of them: what learning from tasks needs."""
        if len(self) < 2:
            raise ValueError(
                f"Learning a prior needs at least 2 tasks, received {len(self)}: one task has "
                "nothing to transfer; give more runs, or use FittedGP, which needs no past runs."
            )
        return self

    def _known_features(self) -> tuple[dict[str, FeatureValue | None], ...]:
        """One dict for each task, empty ones if nothing is known."""
        return self.feature_values or tuple({} for _ in range(len(self)))

    def _known_names(self) -> tuple[str, ...]:
        """One name for each task: its number where it has none."""
        return self.names or tuple(str(i) for i in range(len(self)))

    def _indices(self, indices: Any) -> Int[np.ndarray, " k"]:
        indices = np.asarray(indices)
        if indices.dtype == bool and indices.shape == (len(self),):
            return np.flatnonzero(indices)
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise TypeError(
                f"Received {shortened(indices)} as indices of tasks; give a list of integers, or "
                f"one bool for each of the {len(self)} tasks."
            )
        outside = indices[(indices < -len(self)) | (indices >= len(self))]
        if outside.size:
            raise IndexError(
                f"There is no task {outside[0]}; give indices from 0 to {len(self) - 1}."
            )
        return indices.astype(int)


def _checked_names(names: Iterable[str], count: int) -> tuple[str, ...]:
    called = tuple(names)
    if len(called) != count or not all(isinstance(name, str) for name in called):
        raise ValueError(
            f"`names` is {shortened(list(called))}; give one text for each of the {count} runs."
        )
    return called


def _checked_quantity(quantity: Any) -> Quantity:
    if quantity is None:
        return Quantity()
    if not isinstance(quantity, Quantity):
        raise TypeError(
            f"`quantity` is {shortened(quantity)}; give a Quantity, such as "
            "metaprior.data.Quantity('yield', '%')."
        )
    return quantity


def checked_bounds(bounds: Any) -> tuple[float, float]:
    """Limits of the value as two finite numbers, the lower first."""
    try:
        low, high = (float(each) for each in bounds)
    except (OverflowError, TypeError, ValueError):
        low, high = np.nan, np.nan
    if not (np.isfinite([low, high]).all() and low < high):
        raise ValueError(
            f"The bounds of the value are {shortened(bounds)}; give a lower and a higher number, "
            "such as (0, 100)."
        )
    return low, high


def require_within(
    bounds: tuple[float, float], values: Float[np.ndarray, " m"], complain: Complaint
) -> None:
    """Raise an error for the first value that is beyond the bounds."""
    outside = np.flatnonzero((values < bounds[0]) | (values > bounds[1]))
    if outside.size:
        raise complain(
            int(outside[0]),
            f"received {values[outside[0]]:g}, which is not between the bounds {bounds[0]:g} and "
            f"{bounds[1]:g} of the value; repair the value or the bounds",
        )


def _require_moderate(values: Float[np.ndarray, " k"]) -> None:
    """Raise an error for values, or differences of values, whose squares are not in float64."""
    largest, spread = np.max(np.abs(values)), np.ptp(values)
    if largest > LARGEST_VALUE or 0 < spread < 1 / LARGEST_VALUE:
        problem = (
            f"as large as {largest:g}" if largest > LARGEST_VALUE else f"only {spread:g} apart"
        )
        raise ValueError(
            f"The values are {problem}, where float64 cannot compute; repair them, or give them in "
            "another unit."
        )


def _check_run(
    index: int, run: Any, space: Space
) -> tuple[Float[np.ndarray, "m num_columns"], Float[np.ndarray, " m"]]:
    where = f"task {index}"
    if not isinstance(run, (tuple, list)) or len(run) != 2:
        raise ValueError(
            f"{where}: received {type(run).__name__} {shortened(run)}, which is not a run; give a "
            "pair (points, values)."
        )
    points, values = run
    x = space.encode(points, where=where)
    if not hasattr(values, "__array__"):
        try:
            values = list(values)
        except TypeError:
            raise ValueError(
                f"{where}: received {shortened(values)} as values; give a list of numbers, one "
                "for each point."
            ) from None
    else:
        values = np.asarray(values)
        if values.ndim != 1:
            raise ValueError(
                f"{where}: received values of shape {values.shape}; give a 1-d array, one number "
                "for each point."
            )
    if len(x) != len(values):
        raise ValueError(
            f"{where}: received {len(x)} points but {len(values)} values; give one value for each "
            "point."
        )
    if len(x) == 0:
        raise ValueError(f"{where}: received a run without points; drop it.")
    return x, finite_numbers(values, complaint(where, "y"))


def _pad(array: np.ndarray, capacity: int) -> np.ndarray:
    return np.pad(array, [(0, 0), (0, capacity - array.shape[1])] + [(0, 0)] * (array.ndim - 2))
