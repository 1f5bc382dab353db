"""A callback for `study.optimize` that ends a study when little is left to be gained."""

from dataclasses import dataclass

from optuna.study import Study
from optuna.trial import FrozenTrial

from metaprior.adapters.optuna._lifelong import LifelongSampler
from metaprior.adapters.optuna._sampler import MetaPriorSampler
from metaprior.bo import positive


@dataclass(frozen=True)
class StopWhenDone:
    """Ends a study of one objective when its best value is near enough to the optimum, by what its
    sampler believes: `study.optimize(..., callbacks=[StopWhenDone(tolerance=0.01)])`.

    - `tolerance`: what is near enough, in the units of the value; by default a twentieth of the
      distance from the median of the function to its optimum.
    - `probability`: what must be reached, between 0 and 1: see `StoppingHint.probability`.

    The study must be sampled by `MetaPriorSampler`. Trials that are running are finished.
    """

    tolerance: float | None = None
    probability: float = 0.95

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            positive("tolerance", self.tolerance)
        if not 0 < self.probability < 1:
            raise ValueError(
                f"The probability is {self.probability!r}; give a number between 0 and 1, such as "
                "0.95."
            )

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Look at the study after `trial`, and stop it if it is done."""
        sampler = study.sampler
        if not isinstance(sampler, (MetaPriorSampler, LifelongSampler)):
            raise TypeError(
                f"Study {study.study_name!r} is sampled by {type(sampler).__name__}, which has no "
                "hint when to stop; use MetaPriorSampler, or leave StopWhenDone out."
            )
        hint = sampler.stopping(study, self.tolerance)
        if hint is not None and hint.is_done(self.probability):
            study.stop()
