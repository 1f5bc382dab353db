"""What became of a study of somebody else's storage; known without the host being there."""

from typing import NamedTuple


class StudyUse(NamedTuple):
    """What became of one study.

    - `trials`: how many trials were used; of a study that is not, how many could have been.
    - `left_out`: how many trials were not, by what is the matter with them: failed, pruned,
      running, waiting, not finite, infeasible, without parameters, outside the space.
    - `reason`: why the study was not used; empty if it was.
    """

    name: str
    used: bool
    trials: int
    left_out: dict[str, int]
    reason: str
