r"""What several objectives have in common: the points that no other point beats, and the volume
that they dominate. All values are maximised.

    symbol      meaning                                                     shape
    P           values on the front: none is at least as good everywhere    (n, m)
    r           the reference: volume counts above it only                  (m,)

What `P` does not dominate above `r` is cut into boxes: into slabs between the levels of the last
objective, and each slab into the boxes of the points that reach over it, with one objective less.
Boxes are disjoint, and there are at most $(n + 1)^{m - 1}$.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

# A larger front is thinned out to this many points, by the number of objectives.
MOST_POINTS = {1: 1, 2: 100, 3: 24, 4: 12}
# The closed form takes so many objectives.
MOST_OBJECTIVES = max(MOST_POINTS)
# Where volumes are sampled, every sample is a front of its own that is cut into boxes.
MOST_SAMPLED, FEWEST_SAMPLED = {5: 12, 6: 8}, 4


class Boxes(NamedTuple):
    """Disjoint boxes; an upper corner may be infinite."""

    lower: Float[np.ndarray, "b m"]
    upper: Float[np.ndarray, "b m"]


def on_front(values: Float[np.ndarray, "n m"]) -> Bool[np.ndarray, " n"]:
    """Which rows no other row beats: is as good as everywhere, and better somewhere. Of equal rows,
    the first counts."""
    found = np.zeros(len(values), bool)
    # Whatever beats a row comes before it.
    left = np.lexsort(-values.T[::-1])
    while len(left):
        best, left = left[0], left[1:]
        found[best] = True
        left = left[~np.all(values[left] <= values[best], axis=1)]
    return found


def thinned(front: Float[np.ndarray, "n m"], num: int) -> Float[np.ndarray, "k m"]:
    """At most `num` points of a front: see `far_apart`."""
    return front if len(front) <= num else front[far_apart(front, num)]


def far_apart(front: Float[np.ndarray, "n m"], num: int) -> list[int]:
    """The indices of at most `num` points of a front, far apart from each other; the best of each
    objective are among them if `num` allows."""
    if len(front) <= num:
        return list(range(len(front)))
    width = np.maximum(np.ptp(front, axis=0), np.finfo(float).tiny)
    scaled = (front - front.min(axis=0)) / width
    chosen = list(dict.fromkeys(np.argmax(front, axis=0).tolist()))[:num]
    distance = np.min([np.sum((scaled - scaled[i]) ** 2, axis=1) for i in chosen], axis=0)
    while len(chosen) < num:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.sum((scaled - scaled[chosen[-1]]) ** 2, axis=1))
    return sorted(chosen)


def undominated(front: Float[np.ndarray, "n m"], reference: Float[np.ndarray, " m"]) -> Boxes:
    """Boxes that make up what the front does not dominate, above the reference."""
    front = front[np.all(front > reference, axis=1)]
    if len(reference) == 1:
        best = np.max(front, initial=reference[0], keepdims=True).reshape(1, 1)
        return Boxes(best, np.full((1, 1), np.inf))
    lower, upper = [], []
    for slab in _slabs(front, reference):
        inner = undominated(slab.front, reference[:-1])
        count = len(inner.lower)
        lower.append(np.column_stack([inner.lower, np.full(count, slab.start)]))
        upper.append(np.column_stack([inner.upper, np.full(count, slab.end)]))
    return Boxes(np.concatenate(lower), np.concatenate(upper))


def hypervolume(values: Float[np.ndarray, "n m"], reference: Float[np.ndarray, " m"]) -> float:
    """The volume between the reference and `values`, of which those that are no better than it in
    some objective do not count."""
    front = values[np.all(values > reference, axis=1)]
    if len(front) == 0:
        return 0.0
    if len(reference) == 1:
        return float(np.max(front) - reference[0])
    # The last slab has no upper end, and nothing in it is dominated.
    slabs = _slabs(front[on_front(front)], reference)[:-1]
    return sum((s.end - s.start) * hypervolume(s.front, reference[:-1]) for s in slabs)


class _Slab(NamedTuple):
    """Between two levels of the last objective, the points that reach over it, without it."""

    start: float
    end: float
    front: Float[np.ndarray, "k m"]


def _slabs(front: Float[np.ndarray, "n m"], reference: Float[np.ndarray, " m"]) -> list[_Slab]:
    levels = [float(reference[-1]), *np.unique(front[:, -1]).tolist(), np.inf]
    slabs = []
    for start, end in zip(levels[:-1], levels[1:], strict=True):
        over = front[front[:, -1] >= end][:, :-1]
        # Of one objective only the largest value matters; the others are never read.
        slabs.append(_Slab(start, end, over if over.shape[1] == 1 else over[on_front(over)]))
    return slabs
