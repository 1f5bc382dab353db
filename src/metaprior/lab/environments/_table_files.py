"""Reading tables of evaluations: those shipped with the package, and the original ones.

Shipped files hold every column as its different values and a code for each row: without loss, and
small. Original files are one CSV for each learner, as figshare has them.
"""

import csv
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from metaprior.data import Space
from metaprior.lab.environments._learners import ALL_IDS, LEARNERS

DATASET, VALUE = "data_id", "auc"
ORIGINAL_NAME = "OpenMLRandomBotResultsFinal_mlr.classif.{}.csv"
_BOOSTERS = {"gblinear": "0", "gbtree": "1"}
_TREES_ONLY = ("max_depth", "min_child_weight", "colsample_bytree", "colsample_bylevel")
_MISSING = ("NA", "NaN", "")


class Rows(NamedTuple):
    """Evaluated configurations of all datasets: inputs in the unit cube, and the AUC."""

    data_id: Int[np.ndarray, " r"]
    points: Float[np.ndarray, "r d"]
    values: Float[np.ndarray, " r"]


def shipped_rows(learner: str) -> Rows:
    """The rows of the file in the package, in its order."""
    place = resources.files("metaprior.lab.environments") / "tables" / f"{learner}.npz"
    with place.open("rb") as file, np.load(file, allow_pickle=False) as arrays:

        def column(name: str) -> np.ndarray:
            return arrays[f"{name}_values"][arrays[f"{name}_codes"]]

        space = LEARNERS[learner].space
        native = np.stack([column(name) for name in space.names], axis=1)
        return Rows(column(DATASET), space.encode(native, where=learner), column(VALUE))


def original_rows(learner: str, folder: Path) -> Rows:
    """The rows of the original table in `folder`, one for each configuration of a dataset.

    - Only the datasets of the paper's split and the three for validation are read.
    - What only trees use is missing for a linear booster, which ignores it; it is put in the
      middle of its column, where it is equally far from everything.
    - Rows that lack another hyper-parameter (the bot's first versions did not record defaults) or
      lie outside of the space are left out.
    - A configuration that was evaluated several times has the mean of its values.
    """
    space = LEARNERS[learner].space
    path = folder / ORIGINAL_NAME.format(learner)
    data_id, native, values = _parsed(path, space)
    low, high = (np.array([getattr(d, end) for d in space.dimensions]) for end in ("low", "high"))
    unused = np.isnan(native)
    inside = (unused | ((native >= low) & (native <= high))).all(axis=1)
    if not inside.any():
        raise _damaged(f"{path} has no usable row of any dataset of the benchmark")
    points = space.encode(np.where(unused, low, native)[inside], where=learner)
    points[unused[inside]] = 0.5
    return _merged(Rows(data_id[inside], points, values[inside]))


def _parsed(path: Path, space: Space) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dataset, hyper-parameters (NaN where trees' ones are not used) and value of each full row."""
    names = (DATASET, VALUE, *space.names)
    wanted = {str(each) for each in ALL_IDS}
    rows = []
    for line, recorded in _lines(path, names):
        if recorded[DATASET] not in wanted:
            continue
        entries = _without_unused(recorded)
        if any(entry in _MISSING for entry in entries.values()):
            continue
        try:
            rows.append([float(entries[name]) for name in names])
        except ValueError as error:
            raise _damaged(
                f"Line {line} of {path} has an entry that is no number ({error})"
            ) from None
    table = np.array(rows, float).reshape(-1, len(names))
    return table[:, 0].astype(int), table[:, 2:], table[:, 1]


def _lines(path: Path, names: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """The number of each line after the header, and its entries in the columns `names`."""
    if not path.is_file():
        raise ValueError(
            f"There is no {path.name} in {path.parent}; fetch it with "
            f"`metaprior env fetch --to {path.parent}`."
        )
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        missing = [name for name in names if name not in header]
        if missing:
            raise _damaged(f"{path} has no column {missing[0]!r}")
        columns = [(name, header.index(name)) for name in names]
        for entries in reader:
            if len(entries) != len(header):
                raise _damaged(
                    f"Line {reader.line_num} of {path} has {len(entries)} entries instead of "
                    f"{len(header)}"
                )
            yield reader.line_num, {name: entries[i] for name, i in columns}


def _damaged(problem: str) -> ValueError:
    return ValueError(f"{problem}; fetch it again with `metaprior env fetch`.")


def _without_unused(entries: dict[str, str]) -> dict[str, str]:
    """The entries of one configuration; NaN for what its booster has no use for."""
    if "booster" not in entries:
        return entries
    linear = entries["booster"] == "gblinear"
    numbers = entries | {"booster": _BOOSTERS.get(entries["booster"], entries["booster"])}
    return numbers | {name: "nan" for name in _TREES_ONLY if linear and entries[name] in _MISSING}


def _merged(rows: Rows) -> Rows:
    """One row for each configuration of a dataset, with the mean of its values."""
    keys = np.column_stack([rows.data_id, rows.points])
    unique, group = np.unique(keys, axis=0, return_inverse=True)
    total = np.bincount(group.ravel(), weights=rows.values)
    return Rows(unique[:, 0].astype(int), unique[:, 1:], total / np.bincount(group.ravel()))
