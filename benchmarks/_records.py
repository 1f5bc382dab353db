"""Records of finished jobs in a file: what is there is not done again."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from benchmarks._processes import in_workers

Job = TypeVar("Job", bound=tuple)


def finished(
    function: Callable[[Job], Any], jobs: Iterable[Job], workers: int, out: Path | None = None
) -> dict[tuple, Any]:
    """The result of every job, by job.

    - `function`: gives what JSON can hold; runs in other processes.
    - `jobs`: named tuples of numbers, texts and booleans.
    - `out`: a file with a line for each result; the jobs in it are not done again.
    """
    wanted = list(jobs)
    known = {} if out is None else read(out)
    missing = [job for job in wanted if tuple(job) not in known]
    for number, (job, result) in enumerate(in_workers(function, missing, workers), start=1):
        known[tuple(job)] = result
        if out is not None:
            with out.open("a") as file:
                file.write(json.dumps([job, result]) + "\n")
        print(f"{number}/{len(missing)}: {', '.join(map(str, job))}", flush=True)
    return {tuple(job): known[tuple(job)] for job in wanted}


def read(out: Path) -> dict[tuple, Any]:
    """The results in a file, by job; a line that was not finished is left out."""
    text = out.read_text() if out.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        out.write_text(whole)
    return {tuple(job): result for job, result in map(json.loads, whole.splitlines())}
