"""All methods on the new tasks of one cell, one file of records each."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hosts._measures import hypervolume_regret
from benchmarks.hosts._methods import METHODS, Searcher, Setting
from benchmarks.hosts._past import Cell
from benchmarks.hosts._records import run_file, write
from benchmarks.hosts._tasks import Task


def records_of_cells(cells: list[Cell], methods: list[str], trials: int, out: Path) -> None:
    """What a process of the benchmark does."""
    for cell in cells:
        records_of_cell(cell, methods, trials, out)


def records_of_cell(cell: Cell, methods: list[str], trials: int, out: Path) -> None:
    """All runs of a cell that are not there yet; a method that was stopped goes on after the last
    task that it finished."""
    setting = Setting(cell, out / "priors")
    for name in methods:
        method = METHODS[name]
        past = cell.past if method.uses_past else None
        file = run_file(out, cell.family, past, cell.seed, name)
        known = _read(file)
        done = {run["task"] for run in known if len(run["regret"]) >= trials}
        for task in cell.unseen():
            if task.name not in done:
                searcher = method.searcher(setting, task, cell.seed)
                known = [run for run in known if run["task"] != task.name]
                known.append({"task": task.name, **run_of(searcher, task, trials)})
                head = {"family": cell.family, "past": past, "seed": cell.seed, "method": name}
                write(file, {**head, "budget": cell.budget, "runs": known})


def run_of(searcher: Searcher, task: Task, trials: int) -> dict[str, Any]:
    """One method on one task: hypervolume regret after, and CPU time of, each trial."""
    values, seconds = [], []
    for _ in range(trials):
        start = time.process_time()
        point = searcher.ask()
        seconds.append(time.process_time() - start)
        found = task.values(point)
        values.append(list(found.values()))
        start = time.process_time()
        searcher.tell(point, found)
        seconds[-1] += time.process_time() - start
    regret = hypervolume_regret(task, np.array(values))
    return {
        "regret": np.round(regret, 5).tolist(),
        "seconds": np.round(seconds, 4).tolist(),
    }


def _read(file: Path) -> list[dict[str, Any]]:
    return json.loads(file.read_text())["runs"] if file.is_file() else []
