"""Runs cases and sorts what happens: accepted, refused in one sentence, or a failure.

A target makes one case from a random generator and a folder, and hands it to the library. It
returns if the input was taken, having checked what came out of it; an AssertionError from there
means that damaged data were believed. An error of the library must be one sentence.
"""

import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

Target = Callable[[np.random.Generator, Path], None]
# What a case may take, in seconds on the wall and of the processor; memory in bytes on top of what
# is used before the first one.
LONGEST_WAIT, LONGEST_WORK = 20.0, 1.0
MOST_MEMORY = 4 << 30
LONGEST_SENTENCE = 2000


class Hang(BaseException):
    """The case did not end."""


@dataclass
class Tally:
    """What became of the cases of one target."""

    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    failures: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        return self.accepted + self.refused + len(self.failures)


def run_cases(
    targets: Mapping[str, Target], numbers: Iterator[int] | range, *, seed: int
) -> dict[str, Tally]:
    """Run the cases of these numbers, each target in turn; case `i` of a seed is the same again."""
    tallies = {name: Tally() for name in targets}
    names = list(targets)
    with tempfile.TemporaryDirectory() as scratch, limited_memory():
        for number in numbers:
            name = names[number % len(names)]
            folder = Path(scratch) / str(number)
            folder.mkdir()
            run_case(tallies[name], targets[name], folder, seed, number)
    return tallies


def run_case(tally: Tally, target: Target, folder: Path, seed: int, number: int) -> None:
    """Run one case and count it."""
    rng = np.random.default_rng([seed, number])
    began = time.process_time()
    problem, accepted = None, False
    try:
        with warnings.catch_warnings(), _alarm():
            warnings.simplefilter("error")
            target(rng, folder)
        accepted = True
    except (ValueError, TypeError, FloatingPointError) as error:
        problem = _unclear(error)
    except AssertionError as error:
        problem = f"believed damaged data: {_where(error)}"
    except Hang as error:
        problem = f"took more than {LONGEST_WAIT:g} s: {_where(error)}"
    except Exception as error:
        problem = f"{type(error).__name__}: {_where(error)}"
    work = time.process_time() - began
    tally.slowest = max(tally.slowest, work)
    if problem is None and work > LONGEST_WORK:
        problem = f"took {work:.1f} s of the processor"
    if problem is not None:
        tally.failures.append(f"case {number}: {problem}")
    elif accepted:
        tally.accepted += 1
    else:
        tally.refused += 1


def table(tallies: Mapping[str, Tally]) -> str:
    """The counts as lines of text, and what failed, like with like."""
    lines = [f"{'target':16}{'cases':>8}{'accepted':>10}{'refused':>9}{'failed':>8}{'slowest':>9}"]
    for name, tally in tallies.items():
        counts = f"{tally.cases:8}{tally.accepted:10}{tally.refused:9}{len(tally.failures):8}"
        lines.append(f"{name:16}{counts}{tally.slowest:8.2f}s")
    for name, tally in tallies.items():
        kinds = Counter(failure.partition(": ")[2] for failure in tally.failures)
        for kind, count in kinds.most_common(20):
            first = next(f for f in tally.failures if f.partition(": ")[2] == kind)
            lines.append(f"\n{name}, {count} times, first {first}")
    return "\n".join(lines)


def _unclear(error: Exception) -> str | None:
    """Why the message is not one clear sentence; `None` if it is."""
    text = str(error)
    if text.endswith(".") and "\n" not in text and len(text) <= LONGEST_SENTENCE:
        return None
    return f"{type(error).__name__} without a sentence: {_where(error)}"


def _where(error: BaseException) -> str:
    """The message, shortened, and the innermost line of code of ours."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "metaprior" in frame.filename or "fuzz" in frame.filename]
    last = ours[-1]
    message = " ".join(str(error).split())[:150]
    return f"{message} ({Path(last.filename).name}:{last.lineno} {last.line})"


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(signum, frame):
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_WAIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def limited_memory() -> Iterator[None]:
    """Input that asks for more memory than this gets a MemoryError, not the machine."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
