"""Which optimiser follows a study, and the values of its trials as that optimiser takes them."""

import math
from collections.abc import Mapping, Sequence

from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial

from metaprior.belief import Prior, Priors
from metaprior.bo import (
    MOST_OBJECTIVES,
    AbstractManyObjectives,
    MultiOptimizer,
    Optimizer,
    StoppingHint,
    Window,
)
from metaprior.data import Points, Space

# What the objective is called where one prior is given for a study of one objective.
VALUE = "value"


class OneValue:
    """An `Optimizer` that is told its value by name, as a `MultiOptimizer` is."""

    def __init__(self, name: str, optimizer: Optimizer):
        self.name, self.optimizer = name, optimizer

    @property
    def space(self) -> Space:
        return self.optimizer.space

    def ask(self, n: int, *, fixed: dict | None = None) -> list[dict]:
        return self.optimizer.ask(n, fixed=fixed)

    def tell(
        self, x: dict, values: Mapping[str, float | None] | None, *, stopped: bool = False
    ) -> None:
        self.optimizer.tell(x, None if values is None else values[self.name], stopped=stopped)

    def expect(self, points: Points) -> None:
        self.optimizer.expect(points)

    def stopping(self, tolerance: float | None) -> StoppingHint | None:
        return self.optimizer.stopping(tolerance)

    def fork(self, *, seed: int) -> "OneValue":
        return OneValue(self.name, self.optimizer.fork(seed=seed))


def optimizer_for(
    priors: Priors, constraints: Sequence[str], window: Window
) -> OneValue | MultiOptimizer:
    """What proposes the points of a study whose trials report the named constraints; those without
    a prior are modelled from the run alone."""
    if len(priors.objectives) == 1 and not constraints:
        ((name, prior),) = priors.objectives.items()
        return OneValue(name, Optimizer(prior, window=window))
    known = {name: priors.constraints.get(name) for name in constraints}
    many = None if len(priors.objectives) <= MOST_OBJECTIVES else _sampled()
    return MultiOptimizer(Priors(priors.objectives, known), window=window, many=many)


def _sampled() -> AbstractManyObjectives | None:
    """What chooses by more objectives than the closed form takes, where BoTorch is installed."""
    try:
        from metaprior.adapters.botorch import ManyObjectives
    except ImportError:
        return None  # the optimiser says what to install
    return ManyObjectives()


class Objectives:
    """The objectives of a study, and the priors for them."""

    def __init__(self, study: Study, priors: Priors):
        names = list(priors.objectives)
        if len(study.directions) != len(names):
            several = len(study.directions) > 1
            needed = f"{len(study.directions)} objectives" if several else "one objective"
            has = f"priors for {names}" if len(names) > 1 else "a prior for one"
            raise ValueError(
                f"Study {study.study_name!r} has {needed}, and MetaPriorSampler has {has}; give it "
                "one prior per objective: `Priors({name: prior, ...})`."
            )
        if len(names) > 1 and study.metric_names is not None:
            if sorted(study.metric_names) != sorted(names):
                raise ValueError(
                    f"The objectives of study {study.study_name!r} are called "
                    f"{study.metric_names}, and the priors {names}; give both the same names."
                )
            names = list(study.metric_names)
        self.names = names
        self._signs = [
            1.0 if _is_meant(priors.objectives[name], direction) else -1.0
            for name, direction in zip(names, study.directions, strict=True)
        ]

    def values(self, trial: FrozenTrial) -> dict[str, float | None]:
        """The values of a complete trial, in the directions of the priors, and its constraints;
        those that are not finite are `None`."""
        assert trial.values is not None
        own = [sign * value for sign, value in zip(self._signs, trial.values, strict=True)]
        found = {**dict(zip(self.names, own, strict=True)), **trial.constraints}
        return {name: v if math.isfinite(v) else None for name, v in found.items()}

    def limit(self, value: float | None) -> dict[str, float | None]:
        """What a trial of the one objective is at most."""
        return {self.names[0]: None if value is None else self._signs[0] * value}


def _is_meant(prior: Prior, direction: StudyDirection) -> bool:
    return prior.direction == direction.name.lower()
