"""The rows about asking: one suggestion, a whole run from a cold process, and how good the points
are."""

import importlib.util
import math
import statistics
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from benchmarks._processes import Worker, run_to_the_end, take_turns
from benchmarks._row import Effort, Row, dearer, faster, skipped

ENOUGH = 1e-6  # shortfall of an acquisition value that counts as none


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
        take_turns(measures, 1)  # the first import may write byte code
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


def _asking(function: str, arguments: dict[str, Any], effort: Effort) -> Worker:
    return Worker(f"benchmarks._asking:{function}", arguments, effort.cache)


def _gain(what: str, gains: list[float]) -> Row:
    """A row of differences in standard deviations of `y`, of which the worst counts."""
    worst = min(gains)
    measured = {"worst": worst, "best": max(gains), "runs": float(len(gains))}
    label = f"{what}, worst of {len(gains)} runs"
    return Row(label, f"{worst:+.0e}", "–", "–", f"≥ −{ENOUGH:g}", worst >= -ENOUGH, measured)
