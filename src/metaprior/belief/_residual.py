r"""Learned processes with a residual term beside their kernel, weighted by evidence.

What a learned kernel rules out, a run may show all the same. So each learned process is there
several times, with

$$ k(x, z) + r^2 \bar v\, h_{5/2}\!\big( |x - z| / (\ell \sqrt d) \big) $$

beside its own $k$, for a few sizes $r$ and lengthscales $\ell$: $h_{5/2}$ is the Matérn-5/2
correlation, and $\bar v$ the variance of the learned kernel.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief._conditioned import observed
from metaprior.belief._learned import ProcessBelief
from metaprior.belief._processes import pick
from metaprior.belief._refine import LogSpread, condition_weighed
from metaprior.belief._shared import with_residuals
from metaprior.belief._weighed import AbstractWeighable, WeighedMembers


class Residuals(NamedTuple):
    """Residual terms side by side.

    - `std`: relative to the function; `lengthscale`: in the unit cube, in units of sqrt(d).
    - `weight`: before a run; they sum to 1.
    """

    std: Float[np.ndarray, " r"]
    lengthscale: Float[np.ndarray, " r"]
    weight: Float[np.ndarray, " r"]


# A prior: a fifth for a kernel that is right as it is, the rest for four ways to be wrong.
LEARNED_RESIDUALS = Residuals(
    np.array([0.0, 0.1, 0.3, 0.1, 0.3]),
    np.array([1.0, 0.15, 0.15, 0.4, 0.4]),
    np.full(5, 0.2),
)


@dataclass(frozen=True)
class WeighedProcesses(AbstractWeighable):
    """Processes that are refined on each run.

    - `log_prior`: the log of each one's weight before a run.
    """

    belief: ProcessBelief
    log_prior: Float[np.ndarray, " g"]

    def weighed(self, x, y) -> WeighedMembers:
        own = self.belief
        run = observed(own.processes, x, y, own.y_mean, own.y_std)
        found = condition_weighed(own.processes, own.noise_variance, own.spread, run)
        return WeighedMembers(found.members, self.log_prior, found.log_evidence)

    def only(self, rows) -> "WeighedProcesses":
        return WeighedProcesses(pick(self.belief, rows), self.log_prior[rows])


def with_every_residual(
    learned: ProcessBelief, residuals: Residuals = LEARNED_RESIDUALS
) -> WeighedProcesses:
    """Every learned process with every residual; the processes are equally likely."""
    num, each = len(learned.y_std), len(residuals.std)
    rows = np.repeat(np.arange(num), each)
    # Kernels on features may vary more in some places than in others: the middle stands for all.
    middle = learned.processes.embed(np.full((1, learned.processes.x_mean.shape[1]), 0.5))
    variance = learned.processes.kernel.diagonal(middle.features)[:, 0]
    processes = with_residuals(
        learned.processes,
        rows,
        np.tile(residuals.std**2, num) * variance[rows],
        np.tile(residuals.lengthscale, num),
    )
    spread = LogSpread(learned.spread.noise[rows], learned.spread.scale[rows])
    units = learned.y_mean[rows], learned.y_std[rows]
    belief = ProcessBelief(processes, learned.noise_variance[rows], spread, *units)
    return WeighedProcesses(belief, np.log(np.tile(residuals.weight, num) / num))
