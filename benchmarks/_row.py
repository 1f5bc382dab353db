"""One row of the speed benchmark, and how a ratio becomes one."""

from typing import NamedTuple

from benchmarks._cost_curve import CostCurve


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
    words = (duration(ours), duration(reference), f"{ratio:.3g}×", f"≥ {at_least:g}×")
    return Row(what, *words, ratio >= at_least, measured)


def dearer(what: str, ours: float, reference: float, at_most: float) -> Row:
    """A row that says how many times more ours takes, where some more is allowed."""
    ratio = ours / reference
    measured = {"ours": ours, "reference": reference, "ratio": ratio}
    words = (duration(ours), duration(reference), f"{ratio:.3g}×", f"≤ {at_most:g}×")
    return Row(what, *words, ratio <= at_most, measured)


def skipped(what: str, why: str) -> Row:
    """A row that could not be measured."""
    return Row(f"{what} ({why})", "–", "–", "–", "–", None, {})


def duration(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
