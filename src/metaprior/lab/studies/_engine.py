"""The engine: runs the jobs of a study that have not finished yet, wherever there are workers.

It knows nothing of what jobs do. Every job that ends is on disk before the next piece of news is
read, so that whatever kills this process costs the jobs in flight and no other.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from metaprior.lab.studies._extra import import_extra
from metaprior.lab.studies._folder import (
    RecordError,
    finished_jobs,
    locked,
    specification_columns,
    write_error,
    write_record,
)
from metaprior.lab.studies._jobs import Columns, Job
from metaprior.lab.studies._workers import News, Trouble, in_processes, in_this_process, on_cluster

SOME_FAILED = 1


class JobsProgress(NamedTuple):
    """Where a study stands, each time a job begins or ends.

    - `done`, `failed`: jobs that ended in this call; `skipped`: jobs that had finished before it.
    - `current`: the job that has just begun or ended; none at the start.
    - `seconds_left`: an estimate, once a job has ended.
    """

    done: int
    skipped: int
    failed: int
    total: int
    current: Job | None
    seconds_left: float | None


class Failure(NamedTuple):
    """A job that failed, and why, in one line; the traceback is in its `.error.txt`."""

    job: Job
    reason: str


class JobsReport(NamedTuple):
    """How a call of the engine went."""

    done: int
    skipped: int
    failures: tuple[Failure, ...]

    @property
    def exit_code(self) -> int:
        """For a command: 0 if every job has finished, 1 if some failed."""
        return SOME_FAILED if self.failures else 0


def run_jobs(
    jobs: Iterable[Job],
    folder: str | Path,
    *,
    workers: int = 1,
    dask: str | None = None,
    on_progress: Callable[[JobsProgress], None] | None = None,
) -> JobsReport:
    """Run those of `jobs` that have no record in `folder` yet, and write their records there.

    A job that fails does not stop the others; it is in the report, and runs again next time.
    Ctrl-C stops everything at once; what has finished is kept.

    - `workers`: 1 runs in this process, more in that many processes of this machine. A script that
      asks for more keeps its own work under `if __name__ == "__main__":`, as always with processes.
    - `dask`: the address of a Dask scheduler, such as `"tcp://host:8786"`, to run there instead.
    - `on_progress`: called with the standing when a job begins or ends.
    """
    if workers < 1:
        raise ValueError(f"A study needs at least 1 worker, got {workers}; ask for 1 or more.")
    if dask is not None and workers != 1:
        raise ValueError(
            f"Jobs run either on the Dask cluster {dask} or in {workers} local processes, not "
            "both; give one of them."
        )
    folder = Path(folder)
    jobs = list(dict.fromkeys(jobs))
    # What would keep records from being written is better found now than when jobs have run.
    for module in ("pandas", "pyarrow"):
        import_extra(module)
    for job in jobs:
        specification_columns(job)
    with locked(folder):
        finished = finished_jobs(folder, jobs)
        waiting = [job for job in jobs if job not in finished]
        done, failures = 0, []
        started = time.monotonic()

        def tell(current: Job | None) -> None:
            if on_progress is not None:
                ended = done + len(failures)
                left = seconds_left(time.monotonic() - started, ended, len(waiting) - ended)
                counts = done, len(finished), len(failures), len(jobs)
                on_progress(JobsProgress(*counts, current, left))

        tell(None)
        with closing(_news(waiting, workers, dask)) as news:
            for job, result in news:
                if result is not None:
                    trouble = _keep(folder, job, result)
                    if trouble is None:
                        done += 1
                    else:
                        failures.append(Failure(job, trouble.reason))
                tell(job)
    return JobsReport(done, len(finished), tuple(failures))


def seconds_left(elapsed: float, ended: int, waiting: int) -> float | None:
    """Time for the jobs that have not ended, at the pace of those that have, however many at once.

    The pace is that of this call, so records of earlier calls do not flatter it.
    """
    return elapsed / ended * waiting if ended else None


def _news(jobs: Sequence[Job], workers: int, dask: str | None) -> News:
    if not jobs:
        return in_this_process(jobs)  # no cluster is needed if there is nothing to run
    if dask is not None:
        return on_cluster(jobs, dask)
    return in_this_process(jobs) if workers == 1 else in_processes(jobs, workers)


def _keep(folder: Path, job: Job, result: Columns | Trouble) -> Trouble | None:
    """Write down how a job ended; its trouble, if it had any.

    Columns that cannot be written are the job's own failure. A full disk is not, and is raised.
    """
    if not isinstance(result, Trouble):
        try:
            write_record(folder, job, result)
            return None
        except RecordError as error:
            result = Trouble(str(error), f"{error}\n")
    write_error(folder, job, f"{job.text}\n\n{result.details}")
    return result
