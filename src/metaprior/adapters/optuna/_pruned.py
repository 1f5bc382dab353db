"""What a pruned trial says: its result would have been no better than that of others.

The values that trials report on their way are not values of the objective (a loss after one epoch
is not one after a hundred), so they are only compared with each other, at the same step:

- A complete trial is *ahead* of a pruned one if it reported a better value at the last step that
  the pruned one reported.
- The result of the pruned trial would have been no better than the median result of those ahead.
- If none is ahead (the pruned one reported nothing or no number, or no other trial reported at that
  step), no better than the median result of all complete trials.
- Without a complete trial there is nothing to compare with.
"""

import math
from collections.abc import Iterable

import numpy as np
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState


class EarlyStops:
    """The pruned trials of a study, and what each of them is at most, by its complete ones."""

    def __init__(self, trials: Iterable[FrozenTrial], direction: StudyDirection):
        trials = sorted(trials, key=lambda trial: trial.number)
        self.pruned = [trial for trial in trials if trial.state == TrialState.PRUNED]
        self._complete = [
            (trial.value, trial.intermediate_values)
            for trial in trials
            if trial.state == TrialState.COMPLETE
            and trial.value is not None
            and math.isfinite(trial.value)
        ]
        self._sign = 1.0 if direction == StudyDirection.MAXIMIZE else -1.0

    def limit(self, trial: FrozenTrial) -> float | None:
        """The value that a pruned trial would not have surpassed; `None` if nothing is known."""
        step = trial.last_step
        reached = math.nan if step is None else self._sign * trial.intermediate_values[step]
        ahead = [
            value
            for value, reported in self._complete
            if step in reported and self._sign * reported[step] > reached
        ]
        results = ahead or [value for value, _ in self._complete]
        return float(np.median(results)) if results else None
