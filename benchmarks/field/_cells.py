"""What there is to do for a cell: collect its past, learn from it, and search with each method."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.field._learners import is_learned, learning_seconds, prior_of, runs_of
from benchmarks.field._methods import METHODS, Setting, label
from benchmarks.field._past import Cell
from benchmarks.field._pools import family_named
from benchmarks.field._records import read_rows, row_of, write
from benchmarks.field._runs import NUM_QUERIES
from benchmarks.field._schedule import Job

# In these regimes new tasks have the same configurations.
SAME_POOLS = ("gp", "tpe", "grid")


def record_file(cell: Cell, name: str, out: Path) -> Path:
    """Where the records of a method are kept."""
    readable = "".join(c if c.isalnum() else "_" for c in name)
    return out / "records" / f"{cell.name}--{readable}.parquet"


def jobs_of(cells: Sequence[Cell], methods: Sequence[str], budget: str, out: Path) -> list[Job]:
    """Everything that is not there yet, by seed: first the past, then priors, then methods."""
    jobs: list[Job] = []
    for seed in dict.fromkeys(cell.seed for cell in cells):
        own = [cell for cell in cells if cell.seed == seed]
        missing = {cell: _missing(cell, methods, budget, out) for cell in own}
        for cell in own:
            if any(METHODS[name].uses_past for name in missing[cell]):
                jobs.append(Job(_past(cell), collect_past, (cell, out)))
        for cell in own:
            needed = dict.fromkeys(METHODS[name].learner_of(budget) for name in missing[cell])
            for learner in needed:
                if learner is not None and not is_learned(learner, cell, out / "priors"):
                    after = (_past(cell),)
                    called = f"{cell.name}: {learner}"
                    jobs.append(Job(called, learn_prior, (learner, cell, out), after))
        jobs += [_search(name, cell, budget, out) for cell in own for name in missing[cell]]
    return jobs


def _missing(cell: Cell, methods: Sequence[str], budget: str, out: Path) -> list[str]:
    """Methods that can be used in a cell and have no records there."""
    return [
        name
        for name in methods
        if cell.regime in METHODS[name].regimes
        and not record_file(cell, label(name, budget), out).is_file()
    ]


def _search(name: str, cell: Cell, budget: str, out: Path) -> Job:
    method = METHODS[name]
    after = [f"{cell.name}: {method.learner_of(budget)}"]
    if method.uses_past:
        after.append(_past(cell))
    elif (twin := _twin(cell)) is not None:
        after.append(_searching(name, twin, budget))
    call = (name, cell, budget, out)
    return Job(_searching(name, cell, budget), write_records, call, tuple(after))


def _twin(cell: Cell) -> Cell | None:
    """A cell before this one where a method that uses no past finds the same."""
    before = SAME_POOLS[: SAME_POOLS.index(cell.regime)] if cell.regime in SAME_POOLS else ()
    return replace(cell, regime=before[0]) if before else None


def _past(cell: Cell) -> str:
    return f"{cell.name}: past"


def _searching(name: str, cell: Cell, budget: str) -> str:
    return f"{cell.name}: {label(name, budget)}, search"


def collect_past(cell: Cell, out: Path) -> None:
    """Collect the past runs of a cell."""
    runs_of(cell, family_named(cell.family), out / "priors")


def learn_prior(learner: str, cell: Cell, out: Path) -> None:
    """Learn one prior of a cell."""
    prior_of(learner, cell, family_named(cell.family), out / "priors")


def write_records(name: str, cell: Cell, budget: str, out: Path) -> None:
    """Search all new tasks of a cell with one method."""
    called, method = label(name, budget), METHODS[name]
    twin = None if method.uses_past else _twin(cell)
    if twin is not None and record_file(twin, called, out).is_file():
        rows = read_rows(record_file(twin, called, out))
        write([row | vars(cell) for row in rows], record_file(cell, called, out))
        return
    family, folder = family_named(cell.family), out / "priors"
    learner, began = method.learner_of(budget), time.process_time()
    search = method.search(Setting(cell, family, folder, budget))
    seconds = time.process_time() - began
    seconds += learning_seconds(learner, cell, folder) if learner is not None else 0.0
    common = vars(cell) | {"method": called, "learning_seconds": seconds}
    rows = []
    for number, pool in enumerate(cell.new_tasks(family)):
        # Another seed for each task: searches that begin at random begin elsewhere.
        found = search(pool, NUM_QUERIES, 1000 * cell.seed + number)
        rows.append(common | row_of(found, pool))
    write(rows, record_file(cell, called, out))
