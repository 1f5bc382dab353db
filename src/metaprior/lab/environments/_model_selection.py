"""Choosing a learner and its hyper-parameters: a conditional space of real learners, looked up.

A configuration is a branch (a support vector machine with one of three kernels, a random forest,
gradient boosting, or nearest neighbours with one of two weightings) and the numbers which that
branch has. Every task is a question about a data set; its values were computed once with
scikit-learn (`tools/make_model_selection.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from metaprior.data import Categorical, Integer, Real, Space

_TREES = {"learner": ["forest", "boosting"]}
_SVM, _BOOSTING = {"learner": ["svm"]}, {"learner": ["boosting"]}
MODEL_SELECTION = Space(
    learner=Categorical(["svm", "forest", "boosting", "neighbours"]),
    # The share of the features that is kept, those with the largest F-statistic.
    keep=Real(0.1, 1.0),
    kernel=Categorical(["linear", "rbf", "poly"], when=_SVM),
    C=Real(0.001, 100.0, log=True, when=_SVM),
    gamma=Real(0.01, 30.0, log=True, when={"kernel": ["rbf", "poly"]}),
    degree=Integer(2, 5, when={"kernel": ["poly"]}),
    max_features=Real(0.05, 1.0, log=True, when=_TREES),
    min_leaf=Integer(1, 40, log=True, when={"learner": ["forest"]}),
    rounds=Integer(3, 100, log=True, when=_BOOSTING),
    rate=Real(0.01, 1.0, log=True, when=_BOOSTING),
    max_depth=Integer(1, 6, when=_BOOSTING),
    neighbours=Integer(1, 40, log=True, when={"learner": ["neighbours"]}),
    weights=Categorical(["uniform", "distance"], when={"learner": ["neighbours"]}),
)
_DIMENSIONS = dict(zip(MODEL_SELECTION.names, MODEL_SELECTION.dimensions, strict=True))
_CHOICES = [name for name, each in _DIMENSIONS.items() if isinstance(each, Categorical)]
# The first two of every seven questions are for choosing how a method works; nothing is ever
# reported on those.
_TUNING, _OF = 2, 7


class _Branch(NamedTuple):
    """The rows of one branch: as configurations, in the unit cube of their numbers, and values."""

    configurations: list[dict[str, Any]]
    space: Space
    points: Float[np.ndarray, "r d"]
    values: Float[np.ndarray, " r"]


@final
@dataclass(frozen=True)
class ModelSelectionTask:
    """One question: a value for every configuration, the area under the ROC curve, to be maximised.

    - `best`, `median`: of all rows of the table.
    """

    name: str
    best: float
    median: float
    _branches: dict[tuple[str, ...], _Branch]

    @classmethod
    def from_rows(
        cls, name: str, configurations: Sequence[dict[str, Any]], values: ArrayLike
    ) -> "ModelSelectionTask":
        """A task that knows these configurations, at least one, and their values."""
        rows: dict[tuple[str, ...], list[int]] = {}
        for i, configuration in enumerate(configurations):
            rows.setdefault(_choices(configuration), []).append(i)
        numbers = np.asarray(values, float)
        branches = {
            key: _branch([configurations[i] for i in several], numbers[several])
            for key, several in rows.items()
        }
        return cls(name, float(numbers.max()), float(np.median(numbers)), branches)

    def evaluate(self, point: Mapping[str, Any]) -> float:
        """The value of the nearest row of the same branch, in the unit cube of its numbers.

        - `point`: the active parameters, and no others.
        """
        MODEL_SELECTION.encode([point])  # complains about what is missing, foreign or outside
        branch = self._branches[_choices(point)]
        wanted = branch.space.encode([{name: point[name] for name in branch.space.names}])
        return float(branch.values[np.argmin(np.sum((branch.points - wanted) ** 2, axis=1))])

    def knows_branch_of(self, point: Mapping[str, Any]) -> bool:
        """Whether the branch of a configuration has rows, as every one has in the table."""
        return _choices(point) in self._branches

    def rows(self) -> list[tuple[dict[str, Any], float]]:
        """Every configuration with its value, branch after branch."""
        return [
            (dict(configuration), float(value))
            for branch in self._branches.values()
            for configuration, value in zip(branch.configurations, branch.values, strict=True)
        ]


def model_selection_tasks() -> list[ModelSelectionTask]:
    """The questions to report on."""
    return [task for i, task in enumerate(_load()) if i % _OF >= _TUNING]


def model_selection_tuning_tasks() -> list[ModelSelectionTask]:
    """The questions to choose on how a method works, about the same data sets."""
    return [task for i, task in enumerate(_load()) if i % _OF < _TUNING]


def _choices(point: Mapping[str, Any]) -> tuple[str, ...]:
    """The branch of a configuration."""
    return tuple(point[name] for name in _CHOICES if name in point)


@cache
def _load() -> tuple[ModelSelectionTask, ...]:
    """The table, read on first use and kept."""
    place = resources.files("metaprior.lab.environments") / "tables" / "model_selection.npz"
    with place.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        columns = {
            name: arrays[f"{name}_values"][arrays[f"{name}_codes"]]
            for name in MODEL_SELECTION.names
        }
        question, names, values = arrays["question_codes"], arrays["question"], arrays["auc"]
    configurations = [
        _configuration(dict(zip(columns, row, strict=True)))
        for row in zip(*columns.values(), strict=True)
    ]
    return tuple(
        ModelSelectionTask.from_rows(str(name), [configurations[i] for i in rows], values[rows])
        for name, rows in ((name, np.flatnonzero(question == i)) for i, name in enumerate(names))
    )


def _configuration(row: Mapping[str, float]) -> dict[str, Any]:
    """The active parameters of a row; in the file, choices are numbers and the inactive are NaN."""
    point: dict[str, Any] = {}
    for name, number in row.items():
        if np.isnan(number):
            continue
        dimension = _DIMENSIONS[name]
        if isinstance(dimension, Categorical):
            point[name] = dimension.choices[int(number)]
        else:
            point[name] = int(number) if isinstance(dimension, Integer) else float(number)
    return point


def _branch(configurations: list[dict[str, Any]], values: Float[np.ndarray, " r"]) -> _Branch:
    numbers = [name for name in configurations[0] if name not in _CHOICES]
    space = Space(**{name: replace(_DIMENSIONS[name], when=()) for name in numbers})
    points = space.encode([{name: each[name] for name in numbers} for each in configurations])
    return _Branch(configurations, space, points, values)
