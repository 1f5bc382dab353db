"""The rows of the speed benchmark: what is measured, against what, and what it should be; those
about asking are in `_asking_rows`.

Repeated timings are summarised by their minimum, since other work on the machine (it takes caches
and memory away) only ever adds to them, and the two sides are timed over windows of about the same
length, since a short window is more easily undisturbed; whole processes are summarised by their
median.
"""

import importlib.util
import math
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._asking_rows import ask, cold_asks, quality, suggesting, suggestion
from benchmarks._cost_curve import CostCurve
from benchmarks._processes import Worker, run_to_the_end, take_turns
from benchmarks._row import Effort, Row, dearer, duration, faster, skipped

SMALL = {"num_tasks": 20, "run_length": 20, "input_dim": 2, "feature_dim": 6}
LARGE = {"num_tasks": 30, "run_length": 100, "input_dim": 6, "feature_dim": 6}
NUM_STEPS = 4000
CONFIGURATIONS = 32


def step(effort: Effort) -> list[Row]:
    """A meta-training step on few short runs, against GPyTorch."""
    return [_step_against_torch("training step, n=20, T=20, d=2", SMALL, 5, 10, 40, effort)]


def large_step(effort: Effort) -> list[Row]:
    """A meta-training step on longer runs, against GPyTorch."""
    return [_step_against_torch("training step, n=30, T=100, d=6", LARGE, 1, 10, 10, effort)]


def pacoh_step(effort: Effort) -> list[Row]:
    """A training step of PACOH-MAP, against GPyTorch."""
    problem = SMALL | {"method_name": "PacohMap"}
    what = "training step of PACOH-MAP, n=20, T=20, d=2"
    return [_step_against_torch(what, problem, 10, 20, 10, effort)]


def ablr_step(effort: Effort) -> list[Row]:
    """A training step of ABLR, against PyTorch."""
    problem = SMALL | {"method_name": "ABLR"}
    what = "training step of ABLR, n=20, T=20, d=2"
    return [_step_against_torch(what, problem, 10, 50, 10, effort)]


def variational_step(effort: Effort) -> list[Row]:
    """A training step of F-PACOH-VI, ten priors at once, against one of F-PACOH-MAP."""
    with (
        _training("our_step", SMALL | {"chunks": 1, "method_name": "FPacohVI"}, effort) as ours,
        _training("our_step", SMALL | {"chunks": 10}, effort) as reference,
    ):
        times = take_turns([ours.measure, reference.measure], 5 if effort.quick else 15)
    what = "training step of F-PACOH-VI, 10 priors (reference: F-PACOH-MAP)"
    return [dearer(what, min(times[0]), min(times[1]), 15)]


def many(effort: Effort) -> list[Row]:
    """Many configurations at once, each against one alone."""
    together = SMALL | {"chunks": 1, "configurations": CONFIGURATIONS}
    with (
        _training("our_step_of_many", together, effort) as ours,
        _training("our_step", SMALL | {"chunks": CONFIGURATIONS}, effort) as alone,
    ):
        times = take_turns([ours.measure, alone.measure], 3 if effort.quick else 8)
    what = f"one of {CONFIGURATIONS} trainings at once, per step (reference: alone)"
    return [faster(what, min(times[0]), min(times[1]), 1)]


def cold(effort: Effort) -> list[Row]:
    """A whole training from the start of a process, against GPyTorch."""
    arguments = SMALL | {"num_steps": NUM_STEPS}
    measured = {"num_measured": 300 if effort.quick else 600}

    def ours(compilation_cache: str | None = None) -> float:
        return _whole("our_whole_training", arguments, compilation_cache)

    def reference() -> float:
        return _whole("reference_whole_training", arguments | measured)

    with tempfile.TemporaryDirectory() as cache:
        ours(cache)
        measures = [ours, lambda: ours(cache), reference]
        uncached, cached, theirs = take_turns(measures, 1 if effort.quick else 3)
    what = f"{NUM_STEPS} steps from a cold process"
    against = statistics.median(theirs)
    return [
        faster(what, statistics.median(uncached), against, 4),
        faster(f"{what}, compilation cache warm", statistics.median(cached), against, 15),
    ]


def imports(effort: Effort) -> list[Row]:
    """Importing the library, against importing JAX alone."""

    def measure(module: str) -> Callable[[], float]:
        return lambda: run_to_the_end([sys.executable, "-c", f"import {module}"]).seconds

    measures = [measure("metaprior"), measure("jax")]
    take_turns(measures, 1)  # the first import may write byte code, or read from a cold disk
    ours, reference = take_turns(measures, 3 if effort.quick else 7)
    medians = statistics.median(ours), statistics.median(reference)
    return [dearer("import metaprior (reference: import jax)", *medians, 1.5)]


def tasks(effort: Effort) -> list[Row]:
    """A step must not cost more when there are more tasks to draw from."""
    with (
        _training("our_step", SMALL | {"num_tasks": 5000, "chunks": 5}, effort) as all_tasks,
        _training("our_step", SMALL | {"chunks": 5}, effort) as few_tasks,
    ):
        times = take_turns([all_tasks.measure, few_tasks.measure], 5 if effort.quick else 15)
    what = "training step, n=5000, T=20, d=2 (reference: n=20)"
    return [dearer(what, min(times[0]), min(times[1]), 1.2)]


def learning(effort: Effort) -> list[Row]:
    """`learn` as it is, from the start of a process, against 4000 steps of GPyTorch."""
    sizes = {name: SMALL[name] for name in ("num_tasks", "run_length", "input_dim")}
    measured = {"num_steps": NUM_STEPS, "num_measured": 300 if effort.quick else 600}
    ours, theirs = take_turns(
        [
            lambda: _whole("our_whole_learning", sizes | {"budget": "normal"}),
            lambda: _whole("reference_whole_training", SMALL | measured),
        ],
        1 if effort.quick else 3,
    )
    what = f"learn(), n=20, T=20, d=2, all of it (reference: {NUM_STEPS} steps)"
    return [faster(what, statistics.median(ours), statistics.median(theirs), 1)]


def compiling(effort: Effort) -> list[Row]:
    """`learn` in a new process: without a cache of compiled programs, and with it."""
    rows = []
    for budget in ("fast",) if effort.quick else ("fast", "normal"):
        problem = {"num_tasks": 20, "run_length": 30, "input_dim": 7, "budget": budget}
        what = f"learn(budget={budget!r}), n=20, T=30, d=7"
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (_whole("our_compiling", problem, cache) for _ in range(2))
        rows.append(faster(f"{what}, cached (reference: cold)", warm[0], cold[0], 1))
        share = warm[1]
        words, measured = f"{share:.0%}", {"warm": share, "cold": cold[1]}
        label = f"{what}, cached: share of tracing and compiling (reference: cold)"
        cold_words = f"{measured['cold']:.0%}"
        rows.append(Row(label, words, cold_words, "–", "< 10 %", share < 0.1, measured))
        peak, label = cold[2], f"{what}, cold: peak memory"
        met = peak < 1.0
        rows.append(Row(label, f"{peak:.2f} GiB", "–", "–", "< 1 GiB", met, {"ours": peak}))
    return rows


def many_tasks(effort: Effort) -> list[Row]:
    """Many long runs in eight dimensions: a step, and the memory of the whole of `learn`."""
    sizes = {"run_length": 50, "input_dim": 8}
    step_of = sizes | {"feature_dim": 6, "chunks": 2}
    with (
        _training("our_step", step_of | {"num_tasks": 10_000}, effort) as all_tasks,
        _training("our_step", step_of | {"num_tasks": 100}, effort) as few_tasks,
    ):
        times = take_turns([all_tasks.measure, few_tasks.measure], 3 if effort.quick else 9)
    what = "training step, n=10000, T=50, d=8 (reference: n=100)"
    rows = [dearer(what, min(times[0]), min(times[1]), 1.5)]
    return [*rows, _peak("learn(), n=10000, T=50, d=8", sizes | {"num_tasks": 10_000}, 2.0)]


def long_runs(effort: Effort) -> list[Row]:
    """Runs of a thousand points: learned from, and conditioned on."""
    sizes = {"num_tasks": 8, "run_length": 1000, "input_dim": 2}
    return [_peak("learn() and ask, n=8, T=1000, d=2", sizes | {"queries": 1000}, 2.0)]


def cost(effort: Effort) -> list[Row]:
    """How a step grows with the number of past runs, and with their length."""
    return [
        _curve(
            "n", "T = 50, d = 8", {"run_length": 50, "input_dim": 8}, "num_tasks", 10_000, effort
        ),
        _curve("T", "n = 20, d = 2", {"num_tasks": 20, "input_dim": 2}, "run_length", 1000, effort),
    ]


def _curve(
    along: str, fixed: str, sizes: dict[str, int], varied: str, most: int, effort: Effort
) -> Row:
    """A row of several sizes, ten times as large each; the ratio is of the last to the first."""
    steps = [10 ** (i + 1) for i in range(round(math.log10(most)))]
    seconds = []
    for size in steps:
        problem = sizes | {varied: size, "feature_dim": 6, "chunks": 2}
        with _training("our_step", problem, effort) as ours:
            seconds.append(min(ours.measure() for _ in range(1 if effort.quick else 5)))
    curve = CostCurve(along, fixed, steps, [1000 * each for each in seconds])
    words = f"{duration(seconds[0])} to {duration(seconds[-1])}"
    what = f"training step, {fixed}, {along} = {steps[0]} to {steps[-1]}"
    ratio = f"{seconds[-1] / seconds[0]:.3g}×"
    return Row(what, words, "–", ratio, "–", None, {}, curve)


def _peak(what: str, arguments: dict[str, Any], at_most: float) -> Row:
    """Time and peak memory, in GiB, of a process that learns with the fast budget."""
    call = f"our_whole_learning(**{arguments | {'budget': 'fast'}!r})()"
    code = f"from benchmarks._training import our_whole_learning; {call}"
    finished = run_to_the_end([sys.executable, "-c", code])
    peak = finished.peak_bytes / 2**30
    words = f"{peak:.2f} GiB, {duration(finished.seconds)}"
    measured = {"ours": peak, "seconds": finished.seconds}
    what, target = f"peak memory of {what}", f"< {at_most:g} GiB"
    return Row(what, words, "–", "–", target, peak < at_most, measured)


def memory(effort: Effort) -> list[Row]:
    """Peak memory of the demonstration."""
    what = "peak memory of `metaprior demo`"
    if effort.quick:
        return [skipped(what, "skipped: not with --quick")]
    package = importlib.util.find_spec("metaprior")
    folders = package.submodule_search_locations if package else None
    if not folders or not any(Path(folders[0]).glob("cli*")):
        return [skipped(what, "skipped: no such command")]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "metaprior.cli", "demo", "--out", f"{folder}/demo"]
        peak = run_to_the_end(command).peak_bytes
    size = f"{peak / 2**20:.0f} MiB"
    return [Row(what, size, "–", "–", "< 1 GiB", peak < 2**30, {"ours": float(peak)})]


class Measurement(NamedTuple):
    """A row, or a few that are measured together, by the name that the command line knows."""

    rows: Callable[[Effort], list[Row]]
    needs_torch: bool = False


MEASUREMENTS = {
    "step": Measurement(step, needs_torch=True),
    "large-step": Measurement(large_step, needs_torch=True),
    "pacoh-step": Measurement(pacoh_step, needs_torch=True),
    "ablr-step": Measurement(ablr_step, needs_torch=True),
    "vi-step": Measurement(variational_step),
    "many": Measurement(many),
    "cold": Measurement(cold, needs_torch=True),
    "ask": Measurement(ask, needs_torch=True),
    "optuna": Measurement(suggestion, needs_torch=True),
    "quality": Measurement(quality, needs_torch=True),
    "cold-asks": Measurement(cold_asks),
    "suggest": Measurement(suggesting),
    "import": Measurement(imports),
    "tasks": Measurement(tasks),
    "learn": Measurement(learning, needs_torch=True),
    "compiling": Measurement(compiling),
    "many-tasks": Measurement(many_tasks),
    "long-runs": Measurement(long_runs),
    "cost": Measurement(cost),
    "memory": Measurement(memory),
}


def _training(function: str, arguments: dict[str, Any], effort: Effort) -> Worker:
    return Worker(f"benchmarks._training:{function}", arguments, effort.cache)


def _step_against_torch(
    what: str,
    problem: dict[str, Any],
    chunks: int,
    num_steps: int,
    target: float,
    effort: Effort,
) -> Row:
    """Chunks of our steps against `num_steps` of the reference, which should take as long."""
    with (
        _training("our_step", problem | {"chunks": chunks}, effort) as ours,
        _training("reference_step", problem | {"num_steps": num_steps}, effort) as reference,
    ):
        times = take_turns([ours.measure, reference.measure], 5 if effort.quick else 15)
    return faster(what, min(times[0]), min(times[1]), target)


def _whole(function: str, arguments: dict[str, Any], compilation_cache: str | None = None) -> Any:
    """The answer of a new process about itself."""
    with Worker(f"benchmarks._training:{function}", arguments, compilation_cache) as worker:
        return worker.measure()
