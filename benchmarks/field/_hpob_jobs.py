"""What there is to do on HPO-B: for each search space a past, priors, and searches by method."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.field import _hpob as hpob
from benchmarks.field._learners import is_learned, keep_runs, prior_of
from benchmarks.field._methods import METHODS, Setting, label
from benchmarks.field._past import Cell
from benchmarks.field._schedule import Job

# Evaluations of a past task that are learned from; tasks of HPO-B have up to tens of thousands.
PAST_LENGTH = 100
PARTS = "parts"


def hpob_jobs(data: Path, out: Path, methods: Sequence[str], budget: str) -> list[Job]:
    """Everything that is not there yet."""
    jobs = []
    for space in hpob.search_spaces(data):
        missing = [name for name in methods if not _part(out, space, name, budget).is_file()]
        if missing:
            jobs.append(Job(f"{space}: past", collect_past, (data, space, out)))
        for learner in dict.fromkeys(METHODS[name].learner_of(budget) for name in missing):
            if learner is not None and not is_learned(learner, _cell(space), out / "priors"):
                call = (learner, data, space, out)
                jobs.append(Job(f"{space}: {learner}", learn_prior, call, (f"{space}: past",)))
        for name in missing:
            after = (f"{space}: past", f"{space}: {METHODS[name].learner_of(budget)}")
            called = f"{space}: {label(name, budget)}, search"
            jobs.append(Job(called, search_space, (name, data, space, budget, out), after))
    return jobs


def collect_past(data: Path, space: str, out: Path) -> None:
    """Draw the past runs of a search space."""
    tasks = hpob.past_runs(hpob.family_of(data, space), PAST_LENGTH, seed=0)
    keep_runs(tasks, _cell(space), out / "priors")


def learn_prior(learner: str, data: Path, space: str, out: Path) -> None:
    """Learn one prior of a search space."""
    prior_of(learner, _cell(space), hpob.family_of(data, space), out / "priors")


def search_space(name: str, data: Path, space: str, budget: str, out: Path) -> None:
    """Search all new tasks of a space from the given first rows, and write the results."""
    family, first = hpob.family_of(data, space), hpob.first_rows(data)[space]
    search = METHODS[name].search(Setting(_cell(space), family, out / "priors", budget))
    found = {
        pool.name: {
            seed: hpob.searched(search, pool, first[pool.name][seed], hpob.NUM_TRIALS, number)
            for number, seed in enumerate(hpob.SEEDS)
            if seed in first[pool.name]
        }
        for pool in family.test
    }
    file = _part(out, space, name, budget)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps({"method": label(name, budget), "results": {space: found}}))
    part.replace(file)


def combine(out: Path) -> list[Path]:
    """One file of results for each method, of all search spaces that are done."""
    results: dict[str, dict[str, Any]] = {}
    for file in sorted((out / PARTS).glob("*.json")):
        part = json.loads(file.read_text())
        results.setdefault(part["method"], {}).update(part["results"])
    files = [out / f"{name}.json" for name in results]
    for file, own in zip(files, results.values(), strict=True):
        file.write_text(json.dumps(own))
    return files


def _part(out: Path, space: str, name: str, budget: str) -> Path:
    readable = "".join(c if c.isalnum() else "_" for c in label(name, budget))
    return out / PARTS / f"{space}--{readable}.json"


def _cell(space: str) -> Cell:
    """The name under which the past and priors of a search space are kept."""
    return Cell("hpob", space, "test", 0)
