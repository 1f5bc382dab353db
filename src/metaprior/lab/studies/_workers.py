"""Where jobs run: in this process, in processes of this machine, or on a Dask cluster.

Each way is a generator of news: a job with `None` when it begins (a cluster does not say when),
and with its columns or its trouble when it ends. Only the engine, which reads the news, writes
files, so that workers need no disk in common. Closing the generator stops what is running.
"""

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from metaprior.lab.studies._extra import import_extra
from metaprior.lab.studies._jobs import Columns, Job

# Read when a numerical library is loaded, and never again. As many workers as cores leave each of
# them one core; threads beyond that only compete.
ONE_THREAD = {
    name: "1"
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
    )
}
REASON_LENGTH = 300
CONNECT_SECONDS = 20


class Trouble(NamedTuple):
    """Why a job has no columns: in one line, and in full."""

    reason: str
    details: str


News = Generator[tuple[Job, Columns | Trouble | None], None, None]


def attempt(job: Job) -> Columns | Trouble:
    """Run `job`; whatever it raises becomes text, which any process can pass to any other."""
    try:
        return job.run()
    except (Exception, SystemExit) as error:
        return Trouble(_reason(error), traceback.format_exc())


def in_this_process(jobs: Sequence[Job]) -> News:
    """One after the other, here."""
    for job in jobs:
        yield job, None
        yield job, attempt(job)


def in_processes(jobs: Sequence[Job], workers: int) -> News:
    """In up to `workers` processes of this machine, each with one job at a time.

    They are spawned, since JAX deadlocks in forked ones. They are not a pool of the standard
    library, where the death of one process takes the jobs of all others with it, and where the
    death of this process leaves the others waiting for ever.
    """
    waiting, idle = deque(jobs), []
    busy: dict[Connection, tuple[_Process, Job]] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                process = idle.pop() if idle else _spawn()
                job = waiting.popleft()
                busy[process.pipe] = process, job
                _send(process, job)
                yield job, None
            for pipe in wait(list(busy)):
                process, job = busy.pop(pipe)  # pyright: ignore[reportArgumentType]
                result = _receive(process)
                if result is None:
                    yield job, _death(process)
                else:
                    idle.append(process)
                    yield job, result
    finally:
        for process in [*idle, *(process for process, _ in busy.values())]:
            process.handle.kill()
            process.handle.join()
            process.pipe.close()


def on_cluster(jobs: Sequence[Job], address: str) -> News:
    """On the workers of the Dask scheduler at `address`.

    A job whose worker dies is given to another one by the scheduler, as often as its setting
    `distributed.scheduler.allowed-failures` says (3 by default).
    """
    distributed = import_extra("distributed")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ConnectionError(
            f"There is no Dask scheduler at {address} ({_reason(error)}); start one with `dask "
            "scheduler` and give the address it prints."
        ) from error
    with client:
        job_of = {f"job-{job.name}": job for job in jobs}
        futures = {key: client.submit(attempt, job, key=key) for key, job in job_of.items()}
        try:
            for future in distributed.as_completed(list(futures.values()), loop=client.loop):
                yield job_of[future.key], _gathered(future, address)
                # The cluster forgets a result when its future is released.
                futures.pop(future.key).release()
        finally:
            client.cancel(list(futures.values()))


class _Process(NamedTuple):
    handle: BaseProcess
    pipe: Connection


def _spawn() -> _Process:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    handle = context.Process(target=_serve, args=(theirs,), daemon=True)
    with _surroundings_of_a_worker():
        handle.start()
    theirs.close()  # so that the pipe ends when the process does
    return _Process(handle, ours)


@contextmanager
def _surroundings_of_a_worker() -> Iterator[None]:
    """What a process started now inherits: one thread, and deafness to Ctrl-C.

    A terminal sends Ctrl-C to every process in it; this one decides what happens to its workers.
    """
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    # Python lets only the main thread set handlers, and cannot put back those that are not its own.
    in_charge = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if in_charge else None
    os.environ.update(ONE_THREAD)
    if handler is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(pipe: Connection) -> None:
    """The life of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        pipe.send(attempt(job))


def _leave_with_parent() -> None:
    """Exit when the parent does: an orphan would only compete with the study when it resumes."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _send(process: _Process, job: Job) -> None:
    try:
        process.pipe.send(job)
    except OSError:
        pass  # it has died, which is found out when its answer is received


def _receive(process: _Process) -> Columns | Trouble | None:
    """What the process sends; nothing if it has died."""
    try:
        return process.pipe.recv()
    except (EOFError, OSError):
        return None


def _death(process: _Process) -> Trouble:
    process.handle.join()
    process.pipe.close()
    code = process.handle.exitcode or 0
    how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    reason = f"the worker process ended {how} while it ran the job"
    return Trouble(reason, f"{reason}\n")


def _gathered(future, address: str) -> Columns | Trouble:
    """The result of a job on a cluster; what the job itself raises is in it."""
    try:
        if future.status == "cancelled":
            raise CancelledError
        # A result that is lost with its worker is computed again: this waits for it.
        return future.result()
    except (OSError, CancelledError) as error:
        raise ConnectionError(
            f"The Dask scheduler at {address} is gone or has cancelled the jobs; finished jobs are "
            "kept: start it and run the study again."
        ) from error
    except Exception as error:  # the workers died of the job, or cannot import what it needs
        return Trouble(_reason(error), traceback.format_exc())


def _reason(error: BaseException) -> str:
    """An exception in one line of bearable length."""
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return line if len(line) <= REASON_LENGTH else line[: REASON_LENGTH - 1] + "…"
