"""Kills processes at random moments and looks at what they leave.

A scene works in a child process until it is killed, and says what was done as soon as it is: from
then on it must not be lost. The child is a fork of this process, which has imported everything but
JAX, so that most of its life is work.
"""

import os
import select
import signal
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

Say = Callable[[str], None]
BEGUN, FAILED = "begun", "failed: "
LONGEST_START = 20.0


class Scene(ABC):
    """Work in a folder that is done again and again, and killed.

    - `longest`: seconds after it has said something for the first time, or after it was started,
      after which it is killed at the latest.
    - `fresh_after`: kills after which the next one begins in an empty folder.
    """

    longest = 0.3
    fresh_after = 25

    def __init__(self, folder: Path):
        self.folder = folder

    @abstractmethod
    def work(self, say: Say) -> None:
        """Work until killed; `say` what has been done."""

    @abstractmethod
    def check(self, said: list[str]) -> None:
        """An AssertionError or any other one if something that was said is not there.

        - `said`: by all processes in this folder.
        """


@dataclass
class Tally:
    """What became of the kills of one scene; `hidden`: those that left files half-written, or
    locks, and the most of them that lay there at once."""

    kills: int = 0
    done: int = 0
    hidden: int = 0
    most_hidden: int = 0
    failures: list[str] = field(default_factory=list)


def run_scene(kind: type[Scene], kills: int, folder: Path, rng: np.random.Generator) -> Tally:
    """Kill the scene so many times, and check what is there after each of them."""
    tally, said = Tally(), []
    scene = None
    for number in range(kills):
        if scene is None or number % kind.fresh_after == 0:
            said = []
            where = folder / str(number)
            where.mkdir(parents=True)
            scene = kind(where)
        at_work = rng.random() < 0.8  # else perhaps while it begins
        new = kill_once(scene, float(rng.uniform(0.0, kind.longest)), at_work=at_work)
        tally.kills += 1
        tally.done += len(new) - new.count(BEGUN)
        said += new
        left = len(hidden_in(scene.folder))
        tally.hidden += left > 0
        tally.most_hidden = max(tally.most_hidden, left)
        try:
            failed = [line for line in new if line.startswith(FAILED)]
            assert not failed, failed[0]
            scene.check(said)
        except Exception as error:
            line = traceback.extract_tb(error.__traceback__)[-1]
            words = f"{type(error).__name__}: {error} ({Path(line.filename).name}:{line.lineno})"
            tally.failures.append(f"kill {number}: {' '.join(words.split())[:400]}")
            scene = None
    return tally


def kill_once(scene: Scene, after: float, *, at_work: bool) -> list[str]:
    """Let the scene work in a child process, kill it, and return what it said.

    - `after`: so many seconds; with `at_work` they begin when it says something.
    """
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ear)
        _work(scene, mouth)
    os.close(mouth)
    if at_work:
        select.select([ear], [], [], LONGEST_START)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(ear, encoding="utf-8") as heard:
        return [line.rstrip("\n") for line in heard if line.endswith("\n")]


def _work(scene: Scene, mouth: int) -> None:
    """The life of the child, which never returns."""

    def say(line: str) -> None:
        os.write(mouth, f"{line}\n".encode())

    try:
        # Its own sequence of random numbers, for the names of files.
        np.random.seed(os.getpid())
        scene.work(say)
    except BaseException as error:
        line = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(line.filename).name}:{line.lineno}"
        say(f"{FAILED}{type(error).__name__} {' '.join(str(error).split())} ({where})")
    finally:
        os._exit(0)


def hidden_in(folder: Path) -> list[str]:
    """Locks, and files that are half-written, anywhere in the folder."""
    return [str(path) for path in folder.rglob(".*") if path.is_file()]
