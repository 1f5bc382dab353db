"""A belief over points of a task, of which features are known that the points do not have."""

import numpy as np
from jaxtyping import Float

from metaprior.belief._belief import AbstractBelief
from metaprior.belief._view import IDENTITY, UnitView


def seen_beside(
    belief: AbstractBelief, num_columns: int, held: Float[np.ndarray, " c"], num_after: int = 0
) -> AbstractBelief:
    """`belief`, which knows `num_columns` columns, after them those of `held`, and then `num_after`
    more, over all but those of `held`: they stay at their values.

    Only what learned from features of tasks sees these columns.
    """
    is_held = np.repeat([False, True, False], [num_columns, len(held), num_after])
    matrix = np.eye(len(is_held))[:, ~is_held]
    offset = np.concatenate([np.zeros(num_columns), held, np.zeros(num_after)])
    straight = np.full(len(offset), IDENTITY)
    view = UnitView(matrix, offset, straight, np.zeros(len(offset)), np.ones(len(offset)))
    return belief.with_features(view)
