"""Trials before the first result: what the priors alone propose."""

from collections.abc import Mapping
from typing import Any

from ax.core.experiment import Experiment
from ax.core.observation import ObservationFeatures
from ax.core.parameter import FixedParameter
from ax.core.trial_status import TrialStatus
from ax.core.types import TParameterization

from metaprior.adapters.ax._feasible import is_likely_feasible, likely_feasible
from metaprior.adapters.ax._points import known_part, known_parts, sobol_points
from metaprior.adapters.ax._priors import Metrics
from metaprior.adapters.ax._volume import most_hypervolume
from metaprior.bo import Optimizer
from metaprior.data import Features


def first_point(
    experiment: Experiment,
    metrics: Metrics,
    features: Features | None,
    pending: list[TParameterization],
    fixed: Mapping[str, Any],
    seed: int,
) -> TParameterization:
    """The trial that the priors of the objectives propose, given those under way or lost, among
    points where constrained outcomes with a prior are expected to be allowed.

    - `fixed`: values that some parameters must have.
    """
    lost = [
        arm.parameters
        for status in (TrialStatus.FAILED, TrialStatus.ABANDONED)
        for trial in experiment.trials_by_status[status]
        for arm in trial.arms
    ]
    if len(metrics.objectives) > 1:
        rows = sobol_points(experiment, fixed, [*pending, *lost], seed)
        rows = likely_feasible(rows, metrics, features)
        return rows[most_hypervolume(rows, metrics, features, [*pending, *lost])]
    prior = metrics.priors[next(iter(metrics.objectives))]
    space = experiment.search_space
    point = _asked(Optimizer(prior, features=features, seed=seed), pending, lost, dict(fixed))
    point = _completed(experiment, point)
    if space.check_membership(point) and is_likely_feasible(point, metrics, features):
        return point
    rows = sobol_points(experiment, fixed, [*pending, *lost], seed)
    rows = likely_feasible(rows, metrics, features)
    known = [known_part(prior, row) for row in rows]
    chosen = _asked(
        Optimizer(prior, candidates=known, features=features, seed=seed), pending, lost, {}
    )
    return rows[known.index(chosen)]


def _asked(
    optimizer: Optimizer,
    pending: list[TParameterization],
    lost: list[TParameterization],
    fixed: dict[str, Any],
) -> dict[str, Any]:
    prior = optimizer.prior
    for row in known_parts(prior, lost):
        optimizer.tell(row, None)
    under_way = known_parts(prior, pending)
    if under_way:
        optimizer.expect(under_way)
    names = prior.space.names
    return optimizer.ask(fixed={name: fixed[name] for name in fixed if name in names} or None)


def _completed(experiment: Experiment, point: dict[str, Any]) -> TParameterization:
    """A point with every parameter of the experiment, in its types."""
    space = experiment.search_space
    others = {
        name: parameter.value
        for name, parameter in space.nontunable_parameters.items()
        if name not in point and isinstance(parameter, FixedParameter)
    }
    features = ObservationFeatures(parameters={**point, **others})
    return space.cast_observation_features(features).parameters
