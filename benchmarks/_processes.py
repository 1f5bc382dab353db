"""Measuring in other processes: one thread, one core, and nothing of one side inside the other.

XLA and BLAS read their settings when they are loaded, so every measurement has a process of its
own that is started with them. The two sides of a comparison live side by side and take turns, so
that a disturbance of the machine meets both.

All times are CPU times of the measured process. With one thread on one core they are what a clock
on the wall shows when no other process runs, and a machine is rarely as quiet as that.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

ROOT = Path(__file__).parent.parent

T = TypeVar("T")
Job = TypeVar("Job")

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    # XLA warns about machine features whenever it reads the compilation cache.
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


def in_workers(
    function: Callable[[Job], T], jobs: Iterable[Job], workers: int
) -> Iterator[tuple[Job, T]]:
    """Every job and its result, as they finish, from processes with one thread each.

    - `function`, `jobs`: importable and picklable; jobs start in the given order.
    """
    waiting = list(jobs)
    if not waiting:
        return
    os.environ.update(ONE_THREAD)  # read by the libraries of the processes that start now
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(waiting)), spawn) as pool:
        futures = {pool.submit(function, job): job for job in waiting}
        for future in as_completed(futures):
            yield futures[future], future.result()


def stay_on_one_core() -> None:
    """Keep this process, and all that it will start, on one core where the system allows it."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def environment(compilation_cache: str | None = None) -> dict[str, str]:
    """The settings of a measured process; without a folder there is no compilation cache."""
    # Settings of the caller's JAX, a cache above all, are not what is measured.
    # An installed package has byte code, and so has a source folder after its first import.
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("JAX_") and name != "PYTHONDONTWRITEBYTECODE"
    }
    settings = inherited | ONE_THREAD | {"METAPRIOR_CACHE": "off"}
    if compilation_cache is not None:
        settings["JAX_COMPILATION_CACHE_DIR"] = compilation_cache
        # By default JAX keeps only what took a second to compile.
        settings["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    return settings


class Worker:
    """A process that runs `benchmarks._worker`; a context, at whose end the process ends too."""

    def __init__(
        self, function: str, arguments: dict[str, Any], compilation_cache: str | None = None
    ):
        self._function = function
        self._log = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks._worker", function, json.dumps(arguments)],
            cwd=ROOT,
            env=environment(compilation_cache),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> "Worker":
        self._read()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def measure(self) -> Any:
        """The answer to one repetition."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return json.loads(self._read())

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._log.seek(0)
            raise RuntimeError(f"{self._function} failed:\n{self._log.read()[-4000:]}")
        return line


def take_turns(measures: Sequence[Callable[[], T]], repetitions: int) -> tuple[list[T], ...]:
    """The answers of each of `measures`, repeated in turns."""
    answers: tuple[list[T], ...] = tuple([] for _ in measures)
    for _ in range(repetitions):
        for measure, collected in zip(measures, answers, strict=True):
            collected.append(measure())
    return answers


class Finished(NamedTuple):
    """What a whole process took."""

    seconds: float
    peak_bytes: int


def run_to_the_end(command: Sequence[str]) -> Finished:
    """Run `command` from start to exit; an exit code other than 0 is an error."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdout=log, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            log.seek(0)
            raise RuntimeError(f"{' '.join(command)} failed:\n{log.read()[-4000:]}")
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return Finished(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit)
