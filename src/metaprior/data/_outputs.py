"""Several named values of the same past runs: objectives and constraints, each of them as tasks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metaprior.data._points import is_missing, read_columns
from metaprior.data._space import Space
from metaprior.data._tasks import Bounds, Tasks
from metaprior.words import shortened

CONSTRAINT = "constraint"
ROLES = ("maximize", "minimize", CONSTRAINT)


@dataclass(frozen=True)
class Outputs:
    """What past runs returned, one `Tasks` per named value, all over one space.

    - `objectives`: to be maximised or minimised.
    - `constraints`: each feasible at or below 0, and so minimised.
    """

    objectives: Mapping[str, Tasks]
    constraints: Mapping[str, Tasks] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.objectives:
            raise ValueError(
                "There is no objective among the outputs; let one of them be 'maximize' or "
                "'minimize'."
            )
        first, *others = self.by_name.items()
        for name, tasks in others:
            if tasks.space != first[1].space:
                raise ValueError(
                    f"The tasks of {name!r} are over another space than those of {first[0]!r}; "
                    "build all of them over one space."
                )

    @property
    def by_name(self) -> dict[str, Tasks]:
        """The tasks of every output, objectives first."""
        return {**self.objectives, **self.constraints}

    @property
    def space(self) -> Space:
        """The space of all of them."""
        return next(iter(self.objectives.values())).space

    def __getitem__(self, name: str) -> Tasks:
        if name not in self.by_name:
            raise KeyError(f"There is no output {name!r}; there are {list(self.by_name)}.")
        return self.by_name[name]

    @classmethod
    def from_runs(
        cls,
        runs: Iterable[Any],
        *,
        space: Space,
        outputs: Mapping[str, str],
        features: Iterable[Any] | None = None,
        value_bounds: Mapping[str, Bounds] | None = None,
    ) -> "Outputs":
        """Outputs from past runs, each a pair `(points, values)`.

        - `values`: a list of dicts, a data frame, or a 2-d array with one column per output; `None`
          or NaN where a value is not known.
        - `outputs`: what each value is, by name: `"maximize"`, `"minimize"`, or `"constraint"` for
          one that holds at or below 0.
        - `features`: see `Tasks.from_runs`; `value_bounds`: the same, by name.
        """
        require_roles(outputs)
        bounds = dict(value_bounds or {})
        if not bounds.keys() <= outputs.keys():
            unknown = next(name for name in bounds if name not in outputs)
            raise ValueError(f"`value_bounds` has {unknown!r}; the outputs are {list(outputs)}.")
        checked = [_check_run(i, run, space, tuple(outputs)) for i, run in enumerate(runs)]
        known_features = None if features is None else list(features)
        found = {}
        for j, name in enumerate(outputs):
            found[name] = Tasks.from_runs(
                [_known(points, columns[j]) for points, columns in checked],
                space=space,
                direction=direction_of(outputs[name]),
                features=known_features,
                value_bounds=bounds.get(name),
            )
        return cls.of(found, outputs)

    @classmethod
    def of(cls, tasks: Mapping[str, Tasks], outputs: Mapping[str, str]) -> "Outputs":
        """The outputs with these tasks and roles."""
        return cls(
            {name: tasks[name] for name, role in outputs.items() if role != CONSTRAINT},
            {name: tasks[name] for name, role in outputs.items() if role == CONSTRAINT},
        )


def require_roles(outputs: Mapping[str, str]) -> None:
    """Raise an error unless every output has a role, and one of them is an objective."""
    if not isinstance(outputs, Mapping) or not outputs:
        raise ValueError(
            f"`outputs` is {shortened(outputs)}; give names and roles, such as "
            '{"accuracy": "maximize", "memory": "constraint"}.'
        )
    for name, role in outputs.items():
        if role not in ROLES:
            raise ValueError(
                f"The output {name!r} is {role!r}; give 'maximize', 'minimize' or 'constraint'."
            )


def direction_of(role: str) -> str:
    """How the tasks of an output are oriented: a constraint is the better the lower it is."""
    return "minimize" if role == CONSTRAINT else role


def _check_run(
    index: int, run: Any, space: Space, names: tuple[str, ...]
) -> tuple[list[Any], list[Any]]:
    where = f"task {index}"
    if not isinstance(run, (tuple, list)) or len(run) != 2:
        raise ValueError(
            f"{where}: received {type(run).__name__} {shortened(run)}, which is not a run; give a "
            "pair (points, values)."
        )
    points = space.as_dicts(run[0], where=where)
    columns = read_columns(_selected(run[1], names), names, where=where, may_lack=frozenset(names))
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(points):
            raise ValueError(
                f"{where}: received {len(points)} points but {len(column)} values of {name!r}; "
                "give one value for each point, None where it is not known."
            )
        if all(is_missing(value) for value in column):
            raise ValueError(
                f"{where}: no value of {name!r} is known; drop the run, or leave out the output."
            )
    return points, columns


def _selected(values: Any, names: tuple[str, ...]) -> Any:
    """The named ones of the values; a run may have returned others, too."""
    if hasattr(values, "columns"):
        return values[[name for name in names if name in values.columns]]
    if hasattr(values, "__array__") or not isinstance(values, Iterable):
        return values
    rows = list(values)
    if not all(isinstance(row, Mapping) for row in rows):
        return rows
    return [{name: row[name] for name in names if name in row} for row in rows]


def _known(points: list[Any], column: Any) -> tuple[list[Any], list[Any]]:
    """The points at which a value is known, and the values."""
    known = np.flatnonzero([not is_missing(value) for value in column])
    return [points[i] for i in known], [column[i] for i in known]
