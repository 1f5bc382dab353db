"""Predictions of a run's points, each from points before it.

Points are predicted in stages,

    stage           0    1    2       3          4 ...
    predicted       1st  2nd  3rd-4th 5th-8th    9th-16th
    predicted from  0    1    2       4          8

so that the sum of their log densities is close to the marginal likelihood (a sum of one-step
predictions) and costs a few conditionings; nothing is judged by data that it was fitted to.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief._conditioned import ConditionedProcesses, Observed
from metaprior.belief._members import MemberMoments
from metaprior.belief._mixture import BeliefMoments, joined, mixed
from metaprior.belief._processes import GaussianProcesses


class WeightedProcesses(NamedTuple):
    """Conditioned processes, and how much each member counts."""

    members: ConditionedProcesses
    weights: Float[np.ndarray, " K"]


def stages(num: int) -> Iterator[tuple[int, int]]:
    """First and last point of each stage; the first is also the number it is predicted from."""
    context = 0
    while context < num:
        until = min(max(2 * context, 1), num)
        yield context, until
        context = until


def moments_in_turn(
    condition: Callable[[Observed], WeightedProcesses], processes: GaussianProcesses, run: Observed
) -> BeliefMoments:
    """What processes expected of each point; they see every point once, for all stages."""
    found = []
    for context, until in stages(run.residual.shape[1]):
        members, weights = condition(run.first(context))
        covariance = run.covariance[:, :context, context:until]
        mean, variance = members.moments_at(run.seen.rows(context, until), covariance)
        found.append(mixed(MemberMoments(mean, variance, members.noise_in_units), weights))
    return joined(found)
