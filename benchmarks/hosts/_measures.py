"""What a run says: hypervolume regret after each trial, relative to the best known front."""

import numpy as np
from jaxtyping import Float

from benchmarks.hosts._tasks import Task
from metaprior.bo import hypervolume

STEPS = (5, 10, 20, 30)


def hypervolume_regret(task: Task, values: Float[np.ndarray, "t m"]) -> Float[np.ndarray, " t"]:
    """The share of the best known volume that the first 1, 2, ... trials do not dominate.

    With one objective this is the distance to the best value as a share of the distance from the
    reference to it, and 1 until a trial is better than the reference. It is a little below 0 if
    trials dominate more than the best front that is known.
    """
    signed, reference = values * task.signs, task.reference * task.signs
    found = [hypervolume(signed[: t + 1], reference) for t in range(len(signed))]
    return 1.0 - np.array(found) / task.volume
