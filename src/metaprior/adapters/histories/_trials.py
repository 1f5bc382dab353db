"""The trials of one study that can be learned from, and a count of the others.

A study is what belongs to one task, and a trial is one evaluation, whatever a host calls them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from metaprior.adapters.histories._declared import Declared

FEWEST_TRIALS = 2
TOO_FEW_TRIALS = f"fewer than {FEWEST_TRIALS} complete trials with finite values"
SEVERAL_OBJECTIVES = "several objectives"


class UsableTrial(NamedTuple):
    """A complete trial and its number; choices are as a space holds them.

    - `declared`: what each parameter could be.
    - `outputs`: several values by name, where they are read together.
    """

    number: int
    params: dict[str, Any]
    declared: Mapping[str, Declared]
    value: float
    outputs: Mapping[str, float] = {}


class StudyTrials(NamedTuple):
    """The usable trials of a study, in order.

    - `left_out`: how many others there are, by reason.
    - `reason`: why the study as a whole cannot be used; empty if it can.
    - `attributes`: of the study, as its user set them.
    - `metric`: what the study calls its value; empty if it does not say.
    """

    name: str
    direction: str
    trials: list[UsableTrial]
    left_out: dict[str, int]
    reason: str = ""
    attributes: Mapping[str, Any] = {}
    metric: str = ""

    def keeping(self, trials: list[UsableTrial], *, others: str, reason: str) -> "StudyTrials":
        """The study with these trials only; the others are counted under the word `others`, and
        `reason` is why there are then too few."""
        lost = len(self.trials) - len(trials)
        if not lost:
            return self
        left_out = {**self.left_out, others: self.left_out.get(others, 0) + lost}
        few = len(trials) < FEWEST_TRIALS
        return self._replace(trials=trials, left_out=left_out, reason=reason if few else "")
