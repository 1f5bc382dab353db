"""Jobs that wait for each other, over processes of which one may die, within a time limit."""

import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any, NamedTuple

# A job whose process died is tried once more: another job may have taken all the memory.
ATTEMPTS = 2


class Job(NamedTuple):
    """A call in a process of the pool.

    - `after`: names of jobs that have to succeed before; those that are not in the list have.
    """

    name: str
    call: Callable[..., None]
    arguments: tuple[Any, ...]
    after: tuple[str, ...] = ()


@dataclass
class Outcome:
    """Names of jobs that are done, why others failed, and how many were never started."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left: int = 0


def run_jobs(
    jobs: Sequence[Job],
    workers: int,
    seconds: float | None = None,
    tell: Callable[[str], None] = print,
) -> Outcome:
    """Run jobs in their order as far as they need not wait; a job that fails stops no other.

    - `seconds`: no job is started after so many; those that run are waited for.
    """
    began, outcome = time.monotonic(), Outcome()
    waiting, attempts = list(jobs), dict.fromkeys((job.name for job in jobs), 0)
    names, running = set(attempts), {}
    pool = _pool(workers)

    def fail(job: Job, reason: str) -> None:
        outcome.failed[job.name] = reason
        tell(f"failed: {job.name}: {reason.strip().splitlines()[-1]}")

    while True:
        late = seconds is not None and time.monotonic() - began >= seconds
        for job in [j for j in waiting if set(j.after) & set(outcome.failed)]:
            waiting.remove(job)
            fail(job, f"{job.after[0]} failed")
        while not late and len(running) < workers:
            job = next((j for j in waiting if set(j.after) & names <= {*outcome.done}), None)
            if job is None:
                break
            waiting.remove(job)
            attempts[job.name] += 1
            running[pool.submit(job.call, *job.arguments)] = job
        if not running:
            break
        finished: set[Future] = wait(running, return_when=FIRST_COMPLETED).done
        broken = False
        for future in finished:
            job, error = running.pop(future), future.exception()
            if error is None:
                outcome.done.append(job.name)
                took = time.monotonic() - began
                tell(f"[{len(outcome.done)}/{len(jobs)}] {took:.0f} s: {job.name}")
            elif isinstance(error, BrokenExecutor):
                broken = True
                running[future] = job
            else:
                fail(job, "".join(traceback.format_exception(error)))
        if broken:
            for job in running.values():
                if attempts[job.name] < ATTEMPTS:
                    waiting.insert(0, job)
                else:
                    fail(job, "its process died")
            running = {}
            pool.shutdown(wait=False)
            pool = _pool(workers)
    pool.shutdown()
    outcome.left = len(waiting)
    return outcome


def _pool(workers: int) -> ProcessPoolExecutor:
    # Processes are started afresh, since JAX does not survive a fork.
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
