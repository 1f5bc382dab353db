"""What users will ask: the chosen members in one belief with what does not transfer.

Members that are Gaussian processes are weighted by evidence, beside past tasks; others are behind a
guard.
"""

import numpy as np

from metaprior.belief import has_belief, is_weighable
from metaprior.data import Tasks
from metaprior.learning._exam import Fold, without_each
from metaprior.learning._predict import (
    AbstractPredictors,
    ConditionedPredictors,
    FeaturedPredictors,
)
from metaprior.meta import entry
from metaprior.methods import (
    AbstractGradientMethod,
    AbstractMethod,
    AbstractSurrogate,
    Ensemble,
    EnsembleSurrogate,
    Guarded,
    TrainedContents,
    Weighed,
    settings_of,
)

# Weight before a run of single past tasks, if the members see features of tasks: they then know
# which past tasks the new one is like, and single ones do not.
WEIGHT_BESIDE_FEATURES = 0.25


def asked_method(
    method: AbstractGradientMethod, members: int, *, past_weight: float
) -> Weighed | Guarded:
    """The method around the chosen one, of which there are so many members.

    - `past_weight`: of single past tasks, before a run.
    """
    base: AbstractMethod = method if members == 1 else Ensemble(method, members)
    settings = {"name": type(base).__name__, **settings_of(base)}
    if not (is_weighable(settings) and has_belief(settings)):
        return Guarded(base)
    return Weighed(base, past_weight=past_weight)


def asked_contents(
    method: AbstractGradientMethod,
    members: AbstractSurrogate,
    count: int,
    tasks: Tasks,
    *,
    private: bool = False,
) -> TrainedContents:
    """What was learned from `tasks`, as users ask it.

    - `members`: surrogates of `method`, stacked; `count` of them.
    - `tasks`: as the members see them.
    - `private`: whether no point of a past run may be among it.
    """
    learned = entry(members, 0) if count == 1 else EnsembleSurrogate(members)
    sees_features = tasks.space_of_points is not None
    past_weight = WEIGHT_BESIDE_FEATURES if sees_features else Weighed().past_weight
    around = asked_method(method, count, past_weight=0.0 if private else past_weight)
    return TrainedContents(around, around.around(learned, tasks))


def asked_predictors(
    method: AbstractGradientMethod,
    members: AbstractSurrogate,
    count: int,
    tasks: Tasks,
    folds: list[Fold],
    *,
    private: bool = False,
) -> AbstractPredictors:
    """What was learned without each fold, as users would ask it.

    - `members`: surrogates of `method`, stacked: `count` that were trained without the first fold,
      then those without the second, and so on.
    - `tasks`: all of them, as the members see them.
    """
    width, beliefs = tasks.x.shape[2], []
    for fold, others in enumerate(without_each(tasks, folds)):
        own = entry(members, np.arange(fold * count, (fold + 1) * count))
        beliefs.append(asked_contents(method, own, count, others, private=private).belief(width))
    if tasks.space_of_points is None:
        return ConditionedPredictors(beliefs)
    return FeaturedPredictors(beliefs, tasks.space_of_points)
