"""The rows of the speed benchmark: what is measured, against what, and what it should be.

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

from benchmarks._cost_curve import CostCurve
from benchmarks._processes import Worker, run_to_the_end, take_turns

SMALL = {"num_tasks": 20, "run_length": 20, "input_dim": 2, "feature_dim": 6}
LARGE = {"num_tasks": 30, "run_length": 100, "input_dim": 6, "feature_dim": 6}
NUM_STEPS = 4000
CONFIGURATIONS = 32
ENOUGH = 1e-6  # shortfall of an acquisition value that counts as none


class Effort(NamedTuple):
    """How hard to measure.

    - `cache`: a folder for compiled code, shared by all measurements that start after compilation.
    """

    quick: bool
    cache: str


class Row(NamedTuple):
    """One line of the table; `ratio` is in the sense that `target` bounds."""

    what: str
    ours: str
    reference: str
    ratio: str
    target: str
    met: bool | None
    measured: dict[str, float]
    """The numbers behind the words, in seconds and bytes."""
    curve: CostCurve | None = None


def faster(what: str, ours: float, reference: float, at_least: float) -> Row:
    """A row that says how many times faster ours is."""
    ratio = reference / ours
    measured = {"ours": ours, "reference": reference, "ratio": ratio}
    words = (_duration(ours), _duration(reference), f"{ratio:.3g}×", f"≥ {at_least:g}×")
    return Row(what, *words, ratio >= at_least, measured)


def dearer(what: str, ours: float, reference: float, at_most: float) -> Row:
    """A row that says how many times more ours takes, where some more is allowed."""
    ratio = ours / reference
    measured = {"ours": ours, "reference": reference, "ratio": ratio}
    words = (_duration(ours), _duration(reference), f"{ratio:.3g}×", f"≤ {at_most:g}×")
    return Row(what, *words, ratio <= at_most, measured)


def skipped(what: str, why: str) -> Row:
    """A row that could not be measured."""
    return Row(f"{what} ({why})", "–", "–", "–", "–", None, {})


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


def ask(effort: Effort) -> list[Row]:
    """One suggestion, against BoTorch's fit and maximisation."""
    with (
        _asking("our_ask", {}, effort) as ours,
        _asking("reference_ask", {}, effort) as reference,
    ):
        times = take_turns([ours.measure, reference.measure], 5 if effort.quick else 15)
    # Every repetition is another run, so no single one may stand for all of them.
    ours_median, reference_median = (statistics.median(side) for side in times)
    return [faster("one ask, t=50, d=6", ours_median, reference_median, 20)]


def suggestion(effort: Effort) -> list[Row]:
    """One suggestion in an Optuna study, against Optuna's samplers."""
    from_prior = Worker("benchmarks._suggesting:our_suggestion", {}, effort.cache)
    reference = "benchmarks._suggesting:reference_suggestion"
    with (
        from_prior as ours,
        Worker(reference, {"sampler": "GPSampler"}) as gp,
        Worker(reference, {"sampler": "TPESampler"}) as tpe,
    ):
        times = take_turns([ours.measure, gp.measure, tpe.measure], 2 if effort.quick else 5)
    ours_median, gp_median, tpe_median = (statistics.median(side) for side in times)
    what = "one suggestion in an Optuna study, Branin, 30 trials (reference: {}Sampler)"
    against_tpe = dearer(what.format("TPE"), ours_median, tpe_median, math.inf)
    return [
        faster(what.format("GP"), ours_median, gp_median, 10),
        # A model is not expected to be as quick as counting: shown, without a target.
        against_tpe._replace(target="–", met=None),
    ]


def quality(effort: Effort) -> list[Row]:
    """How good our maximum of an acquisition is: against BoTorch's, and against SciPy's."""
    seeds = 4 if effort.quick else 12
    with _asking("advantage_on_their_posterior", {}, effort) as worker:
        gains = [worker.measure() for _ in range(seeds)]
    starts = 16 if effort.quick else 64
    with _asking("shortfall_on_our_posterior", {"num_starts": starts}, effort) as worker:
        gains_on_ours = [-worker.measure() for _ in range(seeds // 2)]
    return [
        _gain("UCB of BoTorch's model: our maximum minus BoTorch's", gains),
        _gain(f"UCB of our model: ask minus the best of {starts} L-BFGS-B", gains_on_ours),
    ]


def cold_asks(effort: Effort) -> list[Row]:
    """40 asks of a saved prior from a cold process: against GPSampler and BoTorch, the worst pause,
    and peak memory."""
    has_torch = importlib.util.find_spec("torch") is not None
    what = "load and 40 asks, d=7, cold process"
    with tempfile.TemporaryDirectory() as parent:
        folder = {"folder": f"{parent}/prior"}
        _cold("save_prior", folder)
        measures: list[Callable[[], Any]] = [lambda: _cold("our_asks", folder)]
        if has_torch:
            measures += [lambda: _cold("gp_sampler_trials", {}), lambda: _cold("botorch_asks", {})]
        ours, *theirs = take_turns(measures, 1 if effort.quick else 3)
        peaks = [
            _peak_of_asking("our_asks", folder, f"peak memory of {what}", 200),
            _peak_of_asking(
                "candidate_asks", folder, "peak memory of 10 asks among 50,000 candidates", 500
            ),
        ]
    whole = statistics.median(each["whole"] for each in ours)
    median = statistics.median(each["median"] for each in ours)
    worst = statistics.median(each["worst"] for each in ours)
    targets = (("Optuna's GPSampler", 5), ("BoTorch, log-EI", 20))
    rows = [
        faster(f"{what} (reference: {name})", whole, statistics.median(seconds), target)
        for (name, target), seconds in zip(targets, theirs, strict=False)
    ]
    if not has_torch:
        rows.append(skipped(what, "references skipped: they need torch"))
    return [
        *rows,
        dearer("worst pause after the first of 40 asks (reference: median)", worst, median, 3),
        *peaks,
    ]


def _peak_of_asking(function: str, arguments: dict[str, Any], what: str, at_most: int) -> Row:
    """Peak memory of a process that asks, in MiB."""
    code = f"from benchmarks._cold_asking import {function}; {function}(**{arguments!r})()"
    peak = run_to_the_end([sys.executable, "-c", code]).peak_bytes
    target, met = f"< {at_most} MiB", peak < at_most * 2**20
    return Row(what, f"{peak / 2**20:.0f} MiB", "–", "–", target, met, {"ours": peak})


def suggesting(effort: Effort) -> list[Row]:
    """`metaprior suggest` from a cold process without any cache, against importing SciPy."""
    with tempfile.TemporaryDirectory() as parent:
        _cold("save_prior", {"folder": f"{parent}/prior"})
        options = ["--prior", f"{parent}/prior", "--run", f"{parent}/run.csv"]
        commands = (
            [sys.executable, "-m", "metaprior.cli", "suggest", *options],
            [sys.executable, "-c", "import scipy.optimize"],
        )
        measures = [lambda c=command: run_to_the_end(c).seconds for command in commands]
        take_turns(measures, 1)  # the first import may write byte code, or read from a cold disk
        ours, reference = take_turns(measures, 3 if effort.quick else 7)
    medians = statistics.median(ours), statistics.median(reference)
    return [dearer("metaprior suggest, d=7 (reference: import scipy.optimize)", *medians, 4)]


def _cold(function: str, arguments: dict[str, Any]) -> Any:
    """The answer of a new process about itself."""
    with Worker(f"benchmarks._cold_asking:{function}", arguments) as worker:
        return worker.measure()


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
        share = warm[1] / warm[0]
        words, measured = f"{share:.0%}", {"warm": share, "cold": cold[1] / cold[0]}
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
    words = f"{_duration(seconds[0])} to {_duration(seconds[-1])}"
    what = f"training step, {fixed}, {along} = {steps[0]} to {steps[-1]}"
    ratio = f"{seconds[-1] / seconds[0]:.3g}×"
    return Row(what, words, "–", ratio, "–", None, {}, curve)


def _peak(what: str, arguments: dict[str, Any], at_most: float) -> Row:
    """Time and peak memory, in GiB, of a process that learns with the fast budget."""
    call = f"our_whole_learning(**{arguments | {'budget': 'fast'}!r})()"
    code = f"from benchmarks._training import our_whole_learning; {call}"
    finished = run_to_the_end([sys.executable, "-c", code])
    peak = finished.peak_bytes / 2**30
    words = f"{peak:.2f} GiB, {_duration(finished.seconds)}"
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


def _asking(function: str, arguments: dict[str, Any], effort: Effort) -> Worker:
    return Worker(f"benchmarks._asking:{function}", arguments, effort.cache)


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


def _gain(what: str, gains: list[float]) -> Row:
    """A row of differences in standard deviations of `y`, of which the worst counts."""
    worst = min(gains)
    measured = {"worst": worst, "best": max(gains), "runs": float(len(gains))}
    label = f"{what}, worst of {len(gains)} runs"
    return Row(label, f"{worst:+.0e}", "–", "–", f"≥ −{ENOUGH:g}", worst >= -ENOUGH, measured)


def _duration(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
