r"""The guard against negative transfer: fall back to a non-transfer GP when the past misleads.

The learned belief and a non-transfer Gaussian process are scored by how well each predicted the run
(see `_evidence`). With $r_i$ the difference of their log densities of point $i$, limited to
$\pm b$, and $\nu_i$ the novelty of the point, the trust $p$ in the learned belief is

$$ \operatorname{logit} p = \operatorname{logit} p_0 + \eta \sum_i \nu_i v(r_i), \qquad
   v(r) = \begin{cases} \tfrac12 \ln(1 + r) & r > 0 \\ -\ln(1 - r) & r \le 0 \end{cases} . $$

The posterior is the mixture of the two with weights $w$ and $1 - w$; $w$ is $p$, and exactly 1 or 0
where $p$ is above or below two thresholds.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from metaprior.belief._averaged import AveragedBelief
from metaprior.belief._belief import AbstractBelief
from metaprior.belief._evidence import ScatteredRun, log_scores, scattered
from metaprior.belief._learned import mean_and_std
from metaprior.belief._mixture import Groups, scaled

# Differences below this fraction of the run's standard deviation say nothing about a prior: how
# sharply it predicts points next to others is a matter of its noise.
RESOLUTION = 0.01
# However wrong a prediction was, it is not counted as more.
MOST_NATS = 8.0
# And a good one counts half: to know how wavy functions are is enough to predict a bit better than
# a non-transfer GP, even for a prior that is wrong about where they are large.
PRAISE = 0.5


class GuardSettings(NamedTuple):
    """Trust before the first observation, how fast evidence moves it, and the two thresholds."""

    prior_trust: float = 0.95
    temperature: float = 1.5
    all_above: float = 0.75
    nothing_below: float = 0.25


@dataclass(frozen=True)
class GuardedBelief(AbstractBelief):
    """A learned belief, and what is needed to judge it by a run.

    - `averaged`: the non-transfer Gaussian process.
    """

    learned: AbstractBelief
    averaged: AveragedBelief
    settings: GuardSettings

    def groups(self, x, y) -> Groups:
        return self.settled(self.trust(x, y)).groups(x, y)

    def settled(self, trust: float | None) -> AbstractBelief:
        """The learned belief itself, the non-transfer GP, or both."""
        if trust is None:
            raise ValueError("A guarded belief is settled at no trust; give what `trust` returned.")
        if trust >= self.settings.all_above:
            return self.learned
        if trust < self.settings.nothing_below:
            return self.averaged
        return TrustedBelief(self.learned, self.averaged, trust)

    @property
    def unguarded(self) -> AbstractBelief:
        return self.learned

    def guarding(self, learned: AbstractBelief) -> "GuardedBelief":
        return replace(self, learned=learned)

    def trust(self, x, y) -> float:
        """Trust in the learned belief after a run, between 0 and 1."""
        start = math.log(self.settings.prior_trust / (1.0 - self.settings.prior_trust))
        total = start + self.settings.temperature * self.evidence(x, y)
        return float(np.exp(-np.logaddexp(0.0, -total)))

    def evidence(self, x, y) -> float:
        """How much better the learned belief predicted the run than the non-transfer GP."""
        if len(y) == 0:
            return 0.0
        _, std = mean_and_std(y)
        resolution_variance = (RESOLUTION * std) ** 2
        runs = (scattered(x, y, outwards=outwards) for outwards in (True, False))
        return float(np.mean([self._verdict(run, resolution_variance) for run in runs]))

    def _verdict(self, run: ScatteredRun, resolution_variance: float) -> float:
        ours = log_scores(self.learned, run, resolution_variance)
        theirs = log_scores(self.averaged, run, resolution_variance)
        # A prediction that is not a number is as wrong as one can be.
        nats = np.nan_to_num(ours - theirs, nan=-MOST_NATS)
        counted = np.log1p(np.minimum(np.abs(nats), MOST_NATS))
        return float(np.sum(run.novelty * np.where(nats > 0.0, PRAISE * counted, -counted)))


@dataclass(frozen=True)
class TrustedBelief(AbstractBelief):
    """The learned belief with probability `weight`, otherwise the non-transfer GP."""

    learned: AbstractBelief
    averaged: AveragedBelief
    weight: float

    def groups(self, x, y) -> Groups:
        ours = scaled(self.learned.groups(x, y), self.weight)
        return ours + scaled(self.averaged.groups(x, y), 1.0 - self.weight)
