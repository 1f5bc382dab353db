"""Cheap jobs for the tests of the engine, in a module that any worker process can import.

Run as a program it is an engine that can be killed: `python -m tests.lab.studies.engine_jobs FOLDER
WORKERS`.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from metaprior.lab.studies._jobs import Job

# Names a folder where jobs leave notes; not in the specification, which must not depend on it.
NOTES = "METAPRIOR_TEST_NOTES"
HERE = "tests.lab.studies.engine_jobs"


def measure(specification: dict) -> dict[str, np.ndarray]:
    """Numbers that depend on the seed alone, and a note that they were computed."""
    notes = Path(os.environ[NOTES])
    with (notes / "executions").open("a") as file:
        file.write(f"{os.getpid()} {specification['seed']}\n")
    # The first time, `hold` keeps a job in flight until its process is killed.
    first = notes / f"held-{specification['seed']}"
    if specification.get("hold") and not first.exists():
        first.write_text(str(os.getpid()))
        time.sleep(600)
    rng = np.random.default_rng(specification["seed"])
    return {"step": np.arange(5), "regret": rng.exponential(size=5)}


def refuse(specification: dict) -> dict[str, np.ndarray]:
    raise ArithmeticError(f"the seed {specification['seed']}\nis not to my taste")


def leave(specification: dict) -> dict[str, np.ndarray]:
    sys.exit("enough")


def crash(specification: dict) -> dict[str, np.ndarray]:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def surroundings(specification: dict) -> dict[str, np.ndarray]:
    """What a worker was born with."""
    return {
        "process": np.array([os.getpid()]),
        "threads": np.array([os.environ.get("OMP_NUM_THREADS", "unset")]),
        "deaf": np.array([signal.getsignal(signal.SIGINT) is signal.SIG_IGN]),
    }


def unequal(specification: dict) -> dict[str, np.ndarray]:
    return {"a": np.zeros(3), "b": np.zeros(4)}


def clash(specification: dict) -> dict[str, np.ndarray]:
    return {"seed": np.zeros(3)}


def imaginary(specification: dict) -> dict[str, np.ndarray]:
    return {"z": np.zeros(3, dtype=complex)}


def study(count: int, hold: tuple[int, ...] = ()) -> list[Job]:
    """`count` jobs; those with a seed in `hold` hang the first time they run."""
    return [Job(f"{HERE}:measure", {"seed": seed, "hold": seed in hold}) for seed in range(count)]


def executions(notes: Path) -> list[int]:
    """The seeds of all jobs that were begun so far, in order."""
    log = notes / "executions"
    return [int(line.split()[1]) for line in log.read_text().splitlines()] if log.exists() else []


if __name__ == "__main__":
    from metaprior.lab.studies._engine import run_jobs

    run_jobs(study(8, hold=(5, 6)), sys.argv[1], workers=int(sys.argv[2]))
