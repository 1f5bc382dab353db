"""Several objectives: from where hypervolume counts, and which point is expected to add most.

Volume counts from `metaprior.bo.reference_below`, unless the user has set thresholds. What was
observed alone would not do: after a trial or two its front is a corner of the space.
"""

import numpy as np
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
from jaxtyping import Float
from torch import Tensor

from metaprior.adapters.ax._points import known_part, known_parts
from metaprior.adapters.ax._priors import Metrics
from metaprior.adapters.botorch import UserUnits, model
from metaprior.bo import reference_below
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
        mean, std = _moments(joint, X)
        below = reference_below(np.zeros((0, len(signs))), (mean * signs).numpy(), std.numpy())
        reference = torch.tensor(below)
        front = mean[:0]
        if before:
            front = _moments(joint, units[0].tensor(before))[0] * signs
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
    seen: list[TParameterization],
) -> MultiObjectiveOptimizationConfig:
    """The configuration, with a threshold for every objective that the user has given none.

    - `rows`: points that stand for the search space; `seen`: those observed.
    """
    names, signs = list(metrics.objectives), list(metrics.objectives.values())
    own = [metrics.signature[name] for name in names]
    mean, std = _predicted(adapter, own, rows)
    # What is expected of an observed point is what was observed, but for noise.
    observed, _ = _predicted(adapter, own, seen)
    maximised = np.array(signs)
    reference = reference_below(maximised * observed, maximised * mean, std).tolist()
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


def _predicted(
    adapter: TorchAdapter, signatures: list[str], rows: list[TParameterization]
) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, "n m"]]:
    """Means and standard deviations of metrics at points, a column each."""
    features = [ObservationFeatures(parameters=dict(row)) for row in rows]
    mean, variance = adapter.predict(features)
    columns = [variance[own][own] for own in signatures]
    return (
        np.column_stack([mean[own] for own in signatures]),
        np.sqrt(np.maximum(np.column_stack(columns), 0.0)),
    )


def _moments(joint: ModelListGP, X: Tensor) -> tuple[Tensor, Tensor]:
    """Means and standard deviations at points, a column per model."""
    found = [each.posterior(X.unsqueeze(-2)) for each in joint.models]
    mean = torch.cat([each.mean[:, 0] for each in found], dim=-1)
    return mean, torch.cat([each.variance[:, 0] for each in found], dim=-1).sqrt()
