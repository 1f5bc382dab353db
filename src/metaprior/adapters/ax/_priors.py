"""Which prior speaks of which metric of an experiment."""

from collections.abc import Mapping
from typing import NamedTuple

from ax.core.experiment import Experiment
from ax.core.optimization_config import OptimizationConfig
from ax.core.outcome_constraint import OutcomeConstraint
from ax.core.types import ComparisonOp

from metaprior.adapters.ax._search_space import require_space
from metaprior.belief import Prior
from metaprior.data import direction_sign
from metaprior.words import listed

# In place of the name of a metric: the only objective, whatever it is called.
OBJECTIVE = ""


class OutcomeBound(NamedTuple):
    """A constraint on one metric: it is at least (`GEQ`) or at most (`LEQ`) the bound."""

    name: str
    op: ComparisonOp
    bound: float


class Metrics:
    """The metrics of an experiment that is optimised with priors, checked against them.

    - `priors`: by the name of the metric.
    - `objectives`: the names of the metrics to optimise, each with 1 to maximise, -1 to minimise.
    - `thresholds`: where the user says that an objective begins to count.
    - `bounds`: constraints on metrics with a prior. Those relative to a status quo, and those on
      sums of metrics, are left out: before there are results they say nothing.
    - `needed`: all metrics that must have been observed before a model can be made.
    """

    def __init__(self, experiment: Experiment, priors: Mapping[str, Prior]):
        config = experiment.optimization_config
        if config is None:
            raise ValueError(
                "The experiment has no objective; call `client.configure_optimization` first."
            )
        if config.objective.is_scalarized_objective:
            raise ValueError(
                f"The objective {config.objective.expression!r} is a sum of metrics; give one "
                "metric and its prior, or several objectives with a prior each."
            )
        self.objectives = {name: sign_of(weight) for name, weight in _weights(config)}
        self.thresholds = {
            threshold.metric_names[0]: threshold.bound
            for threshold in getattr(config, "objective_thresholds", [])
            if not threshold.relative
        }
        self.needed = sorted(config.metric_names)
        self.priors = self._by_metric(priors)
        found = [_outcome_bound(constraint) for constraint in config.outcome_constraints]
        self.bounds = [own for own in found if own is not None and own.name in self.priors]
        self.signature = {name: experiment.metrics[name].signature for name in self.needed}
        for name, prior in self.priors.items():
            require_space(prior.space, experiment.search_space)
            sign = self.objectives.get(name)
            if sign is not None and direction_sign(prior.direction) != sign:
                wanted = "maximises" if sign > 0 else "minimises"
                raise ValueError(
                    f"The experiment {wanted} {name!r} and its prior was learned to "
                    f"{prior.direction} it; give the objective the other sign, or the prior of "
                    "another metric."
                )

    def _by_metric(self, priors: Mapping[str, Prior]) -> dict[str, Prior]:
        if OBJECTIVE in priors:
            if len(self.objectives) > 1:
                raise ValueError(
                    f"The experiment has {len(self.objectives)} objectives and there is one prior; "
                    "give a dictionary with a prior for each of "
                    f"{listed(list(map(repr, self.objectives)))}."
                )
            return {next(iter(self.objectives)): priors[OBJECTIVE]}
        for name in priors:
            if name not in self.needed:
                raise ValueError(
                    f"There is a prior for the metric {name!r}, and the experiment optimises "
                    f"{listed(list(map(repr, self.needed)))}; name one of them."
                )
        for name in self.objectives:
            if name not in priors:
                raise ValueError(
                    f"The objective {name!r} has no prior; give one for each of "
                    f"{listed(list(map(repr, self.objectives)))}."
                )
        return dict(priors)


def _outcome_bound(constraint: OutcomeConstraint) -> OutcomeBound | None:
    """The constraint on a metric alone; `None` for one on a sum, or relative to a status quo."""
    if constraint.relative or len(constraint.metric_names) > 1:
        return None
    ((_, weight),) = constraint.metric_weights
    flipped = {ComparisonOp.LEQ: ComparisonOp.GEQ, ComparisonOp.GEQ: ComparisonOp.LEQ}
    op = constraint.op if weight > 0 else flipped[constraint.op]
    return OutcomeBound(constraint.metric_names[0], op, constraint.bound / weight)


def sign_of(weight: float) -> float:
    """1 for a metric to maximise, -1 for one to minimise."""
    return 1.0 if weight > 0 else -1.0


def _weights(config: OptimizationConfig) -> list[tuple[str, float]]:
    return config.objective.metric_weights
