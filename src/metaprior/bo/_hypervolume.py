r"""Expected hypervolume improvement in closed form, for independent objectives that are mixtures.

    symbol      meaning
    f_m         objective m, maximised; independent of the others
    l_b, u_b    corners of box b of what the front does not dominate (see `_front`)
    psi_m(a)    expected excess of objective m over the level a: E max(f_m - a, 0)

A value $f$ adds the volume $\sum_b \prod_m \big( (f_m - l_{bm})^+ - (f_m - u_{bm})^+ \big)$, so

$$ a(x) = \sum_b \prod_m \big( \psi_m(l_{bm}) - \psi_m(u_{bm}) \big), \qquad
   \psi_m(a) = \sum_k w_{mk}\, \sigma_{mk}\, h\!\left( \frac{\mu_{mk} - a}{\sigma_{mk}} \right) $$

with $h(u) = \varphi(u) + u \Phi(u)$: members are not matched by moments, nor paired. With one
objective this is expected improvement. All of it is computed in logarithms, so that it has a slope
where the improvement underflows.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from metaprior.belief import AbstractSmoothFunction, ConditionedBelief
from metaprior.bo._acquisition import SMALLEST_VARIANCE, log_standard_improvement
from metaprior.bo._feasibility import FeasibilityScore
from metaprior.bo._front import Boxes, on_front
from metaprior.bo._mixed import log_mixed

# Members that count less than this are left out.
NEGLIGIBLE = 1e-6
# At most so many numbers per array.
BLOCK_SIZE = 2**20
# The reference lies this share of the front's width below its worst values.
BELOW_WORST = 0.1
# What is hoped for is this many standard deviations above what is expected.
HOPE = 2.0


@dataclass(frozen=True)
class Excess:
    r"""$\ln \psi$ of one objective, over several levels.

    - `level`, `unit`: values of each member are taken as `(value - level) / unit`.
    """

    belief: ConditionedBelief
    levels: Float[np.ndarray, " L"]
    level: Float[np.ndarray, " K"]
    unit: Float[np.ndarray, " K"]

    def values(self, x: Float[np.ndarray, "k d"]) -> Float[np.ndarray, "k L"]:
        moments, weights = self.belief.members(x)
        kept = weights > NEGLIGIBLE
        mean = ((moments.mean - self.level[:, None]) / self.unit[:, None])[kept]
        std = np.sqrt(np.maximum(moments.function_variance, SMALLEST_VARIANCE))
        std = (std / self.unit[:, None])[kept][..., None]
        u = (mean[..., None] - self.levels) / std
        return log_mixed(np.log(std) + log_standard_improvement(u), weights[kept]).values

    def gradients(
        self, x: Float[np.ndarray, "k d"]
    ) -> tuple[Float[np.ndarray, "k L"], Float[np.ndarray, "k L d"]]:
        r"""With $\partial \psi / \partial \mu = \Phi(u)$, $\partial \psi / \partial \sigma =
        \varphi(u) = h(u) - u \Phi(u)$."""
        from scipy.special import log_ndtr

        moments, mean_slope, variance_slope = self.belief.member_slopes(x)
        weights = self.belief.weights
        kept = weights > NEGLIGIBLE
        level, unit = self.level[:, None], self.unit[:, None]
        variance = moments.function_variance
        std = np.sqrt(np.maximum(variance, SMALLEST_VARIANCE))
        is_known = (variance > SMALLEST_VARIANCE)[..., None]
        std_slope = np.where(is_known, variance_slope / (2.0 * std[..., None]), 0.0)
        mean, std = ((moments.mean - level) / unit)[kept], (std / unit)[kept][..., None]
        mean_slope, std_slope = (
            (slope / unit[..., None])[kept] for slope in (mean_slope, std_slope)
        )
        u = (mean[..., None] - self.levels) / std
        log_h = log_standard_improvement(u)
        mixed = log_mixed(np.log(std) + log_h, weights[kept])
        by_u = np.exp(log_ndtr(u) - log_h)
        by_mean, by_std = mixed.shares * by_u / std, mixed.shares * (1.0 - u * by_u) / std
        slope = np.einsum("KkL,Kkd->kLd", by_mean, mean_slope)
        return mixed.values, slope + np.einsum("KkL,Kkd->kLd", by_std, std_slope)


class Corners(NamedTuple):
    """The levels of one objective, and which of them are the ends of each box there; the end of a
    box without one is the level after the last."""

    levels: Float[np.ndarray, " L"]
    lower: Int[np.ndarray, " b"]
    upper: Int[np.ndarray, " b"]


@dataclass(frozen=True)
class HypervolumeScore(AbstractSmoothFunction):
    """Log expected hypervolume improvement, plus the log probability of feasibility."""

    objectives: tuple[Excess, ...]
    corners: tuple[Corners, ...]
    feasibility: FeasibilityScore

    @classmethod
    def over(
        cls,
        boxes: Boxes,
        beliefs: tuple[ConditionedBelief, ...],
        constraints: tuple[ConditionedBelief, ...],
    ) -> "HypervolumeScore":
        """The score of what the boxes leave open."""
        corners = tuple(map(_corners, boxes.lower.T, boxes.upper.T))
        objectives = tuple(
            Excess(belief, own.levels, np.zeros(len(belief.weights)), np.ones(len(belief.weights)))
            for belief, own in zip(beliefs, corners, strict=True)
        )
        return cls(objectives, corners, FeasibilityScore(constraints))

    @classmethod
    def first(
        cls,
        beliefs: tuple[ConditionedBelief, ...],
        constraints: tuple[ConditionedBelief, ...],
        anchors: Float[np.ndarray, "m d"],
    ) -> "HypervolumeScore":
        """The score of a first query: the volume above the median over the anchors of what each
        member expects, in units of its own, since members differ in level and scale."""
        objectives, start = [], np.zeros(1)
        for belief in beliefs:
            mean = belief.members(anchors)[0].mean
            level = np.median(mean, axis=1)
            unit = np.max(mean, axis=1) - level
            unit = np.where(unit > 0.0, unit, max(float(np.std(mean)), SMALLEST_VARIANCE))
            objectives.append(Excess(belief, start, level, unit))
        corner = Corners(start, np.zeros(1, int), np.ones(1, int))
        constrained = FeasibilityScore(constraints)
        return cls(tuple(objectives), (corner,) * len(beliefs), constrained)

    def values(self, x):
        count = sum(len(own.lower) for own in self.corners)
        size = max(BLOCK_SIZE // count, 1)
        blocks = [self._values(x[start : start + size]) for start in range(0, len(x), size)]
        return np.concatenate(blocks) + self.feasibility.values(x)

    def _values(self, x: Float[np.ndarray, "k d"]) -> Float[np.ndarray, " k"]:
        pairs = zip(self.objectives, self.corners, strict=True)
        logs = [_log_widths(excess.values(x), own)[0] for excess, own in pairs]
        return _log_sum(np.sum(logs, axis=0))

    def gradients(self, x):
        values, slopes = self.feasibility.gradients(x)
        found = [excess.gradients(x) for excess in self.objectives]
        widths = [
            _log_widths(value, own) for (value, _), own in zip(found, self.corners, strict=True)
        ]
        terms = np.sum([log for log, _ in widths], axis=0)
        total = _log_sum(terms)
        share = np.exp(terms - total[:, None])
        for (_, slope), (_, left), own in zip(found, widths, self.corners, strict=True):
            # How much each level counts, summed over the boxes that begin or end at it.
            lower = share / np.maximum(left, np.finfo(float).tiny)
            by_level = np.zeros((len(own.levels) + 1, len(x)))
            np.add.at(by_level, own.lower, lower.T)
            np.add.at(by_level, own.upper, -((1.0 - left) * lower).T)
            slopes = slopes + np.einsum("Lk,kLd->kd", by_level[:-1], slope)
        return values + total, slopes


def inferred_reference(
    front: Float[np.ndarray, "n m"],
    objectives: tuple[ConditionedBelief, ...],
    constraints: tuple[ConditionedBelief, ...],
    anchors: Float[np.ndarray, "a d"],
) -> Float[np.ndarray, " m"]:
    """`reference_below` of the observed front and of what is believed of anchors that are likely
    feasible; of all of them if none is."""
    likely = FeasibilityScore(constraints).values(anchors) >= np.log(0.5)
    anchors = anchors[likely if likely.any() else np.ones(len(anchors), bool)]
    moments = [belief.moments(anchors) for belief in objectives]
    mean = np.column_stack([each.mean for each in moments])
    variance = np.column_stack([each.function_variance for each in moments])
    return reference_below(front, mean, np.sqrt(np.maximum(variance, 0.0)))


def reference_below(
    front: Float[np.ndarray, "n m"], mean: Float[np.ndarray, "a m"], std: Float[np.ndarray, "a m"]
) -> Float[np.ndarray, " m"]:
    """A little below the worst values on the front with what is expected, and on the front with
    what may be hoped for.

    By what is expected alone, the volume would end where the run has been: points far from it are
    expected to be worse than the best that was found there.

    - `front`: observed values, all maximised; there may be none.
    - `mean`, `std`: expected values of other points, and how uncertain these are.
    """
    both, hoped = np.vstack([front, mean]), np.vstack([front, mean + HOPE * std])
    extremes = np.vstack([both[on_front(both)], hoped[on_front(hoped)]])
    worst, width = np.min(extremes, axis=0), np.ptp(extremes, axis=0)
    # A front of one point has no width; then its own size decides.
    width = np.where(width > 0.0, width, np.maximum(np.ptp(both, axis=0), np.abs(worst)))
    return worst - BELOW_WORST * np.where(width > 0.0, width, 1.0)


def _corners(lower: Float[np.ndarray, " b"], upper: Float[np.ndarray, " b"]) -> Corners:
    ends = np.concatenate([lower, upper])
    levels, index = np.unique(ends[np.isfinite(ends)], return_inverse=True)
    places = np.full(len(ends), len(levels))
    places[np.isfinite(ends)] = index
    return Corners(levels, *np.split(places, 2))


def _log_widths(
    values: Float[np.ndarray, "k L"], corners: Corners
) -> tuple[Float[np.ndarray, "k b"], Float[np.ndarray, "k b"]]:
    r"""$\ln (\psi(l) - \psi(u))$ of each box, and $1 - \psi(u) / \psi(l)$."""
    padded = np.column_stack([values, np.full(len(values), -np.inf)])
    lower, upper = padded[:, corners.lower], padded[:, corners.upper]
    left = -np.expm1(np.minimum(upper - lower, 0.0))
    with np.errstate(divide="ignore"):  # a box as thin as rounding adds nothing
        return lower + np.log(left), left


def _log_sum(terms: Float[np.ndarray, "k b"]) -> Float[np.ndarray, " k"]:
    most = np.max(terms, axis=1)
    return most + np.log(np.sum(np.exp(terms - most[:, None]), axis=1))
