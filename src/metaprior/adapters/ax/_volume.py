"""Several objectives: from where hypervolume counts, and which point is expected to add most.

Volume counts from a little below the worst that the front of all expected values has in each
objective, unless the user has set thresholds. What was observed would not do: after a trial or two
its front is a corner of the space.
"""

import torch
from ax.adapter.torch import TorchAdapter
from ax.core.observation import ObservationFeatures
from ax.core.optimization_config import MultiObjectiveOptimizationConfig
from ax.core.outcome_constraint import OutcomeConstraint
from ax.core.types import TParameterization
from botorch.acquisition.multi_objective.logei import qLogExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.objective import WeightedMCMultiOutputObjective
from botorch.models import ModelListGP
from botorch.utils.multi_objective.box_decompositions import FastNondominatedPartitioning
from botorch.utils.multi_objective.hypervolume import infer_reference_point
from botorch.utils.multi_objective.pareto import is_non_dominated
from torch import Tensor

from metaprior.adapters.ax._points import known_part, known_parts
from metaprior.adapters.ax._priors import Metrics
from metaprior.adapters.botorch import UserUnits, model
from metaprior.data import Features


def most_hypervolume(
    rows: list[TParameterization],
    metrics: Metrics,
    features: Features | None,
    taken: list[TParameterization],
) -> int:
    """The row that the priors alone expect to dominate most, beyond what those taken do."""
    priors = [metrics.priors[name] for name in metrics.objectives]
    units = [UserUnits(prior.space) for prior in priors]
    nothing = [torch.zeros(0, len(each.space.names), dtype=torch.float64) for each in units]
    joint = ModelListGP(
        *(
            model(prior, empty, empty[:, :1], features=features, coordinates=each)
            for prior, each, empty in zip(priors, units, nothing, strict=True)
        )
    )
    signs = torch.tensor(list(metrics.objectives.values()), dtype=torch.float64)
    X = units[0].tensor([known_part(priors[0], row) for row in rows])
    before = known_parts(priors[0], taken)
    with torch.no_grad():
        expected = _means(joint, X) * signs
        front = _means(joint, units[0].tensor(before)) * signs if before else expected[:0]
        reference = _reference(expected)
        for i, name in enumerate(metrics.objectives):
            if name in metrics.thresholds:
                reference[i] = signs[i] * metrics.thresholds[name]
        improvement = qLogExpectedHypervolumeImprovement(
            model=joint,
            ref_point=reference,
            partitioning=FastNondominatedPartitioning(reference, front),
            objective=WeightedMCMultiOutputObjective(signs),
        )
        return int(improvement(X.unsqueeze(-2)).argmax())


def with_thresholds(
    config: MultiObjectiveOptimizationConfig,
    metrics: Metrics,
    adapter: TorchAdapter,
    rows: list[TParameterization],
) -> MultiObjectiveOptimizationConfig:
    """The configuration, with a threshold for every objective that the user has given none.

    - `rows`: points that stand for the search space.
    """
    means, _ = adapter.predict([ObservationFeatures(parameters=dict(row)) for row in rows])
    names, signs = list(metrics.objectives), list(metrics.objectives.values())
    expected = [
        [sign * v for v in means[metrics.signature[n]]] for n, sign in metrics.objectives.items()
    ]
    reference = _reference(torch.tensor(expected, dtype=torch.float64).T).tolist()
    given = config.objective_thresholds_dict
    added = [
        OutcomeConstraint(
            f"{name} {'>=' if sign > 0 else '<='} {sign * bound!r}",
            metric_name_to_signature={name: metrics.signature[name]},
            relative=False,
        )
        for name, sign, bound in zip(names, signs, reference, strict=True)
        if name not in given
    ]
    return config.clone_with_args(objective_thresholds=[*given.values(), *added])


def _reference(values: Tensor) -> Tensor:
    """A point that the front of the values, all maximised, dominates by a tenth of its extent."""
    return infer_reference_point(values[is_non_dominated(values)])


def _means(joint: ModelListGP, X: Tensor) -> Tensor:
    return torch.cat([each.posterior(X.unsqueeze(-2)).mean[:, 0] for each in joint.models], dim=-1)
