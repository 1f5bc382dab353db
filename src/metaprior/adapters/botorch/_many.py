"""Five objectives and more: candidates of `metaprior.MultiOptimizer` scored by BoTorch's qLogNEHVI.

Models are those that the optimiser has of its values: through a window, under conditions, fitted to
the run alone. Their moments are those of `model`, with values scaled to the spread over candidates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from jaxtyping import Float
from torch import Tensor

from metaprior.belief import ConditionedBelief
from metaprior.bo import AbstractManyObjectives

# Candidates scored at a time: every one has all boxes of every sample.
BLOCK_SIZE = 64
# In units of the spread: far below what matters, and enough for a factor of what repeats.
JITTER = 1e-6


@dataclass(frozen=True)
class ManyObjectives(AbstractManyObjectives):
    """Noisy expected hypervolume improvement by sampling (qLogNEHVI), times feasibility: `many` of
    `metaprior.MultiOptimizer`.

    - `num_samples`: joint samples of all values.
    """

    num_samples: int = 32

    def values(self, front, candidates, rng):
        m = len(front.objectives)
        levels = [*front.reference.tolist(), *([0.0] * len(front.constraints))]
        pairs = zip((*front.objectives, *front.constraints), levels, strict=True)
        beliefs = [ScaledBelief(b, level, _spread(b, candidates)) for b, level in pairs]
        shape, seed = torch.Size([self.num_samples]), int(rng.integers(2**31))
        acquisition = qLogNoisyExpectedHypervolumeImprovement(
            BeliefModel(beliefs),
            [0.0] * m,
            torch.tensor(front.x),
            # One sequence for all values: a Sobol sequence for each would make them dependent.
            sampler=SobolQMCNormalSampler(shape, seed=seed),
            objective=IdentityMCMultiOutputObjective(outcomes=list(range(m))),
            constraints=[partial(_excess, i) for i in range(m, len(beliefs))] or None,
            X_pending=torch.tensor(front.pending) if len(front.pending) else None,
            cache_root=False,
        )
        blocks = torch.tensor(candidates).unsqueeze(-2).split(BLOCK_SIZE)
        with torch.no_grad():
            return torch.cat([acquisition(block) for block in blocks]).numpy()


@dataclass(frozen=True)
class ScaledBelief:
    """A belief about one value, less a level and in units of its own."""

    belief: ConditionedBelief
    level: float
    unit: float

    def joint(
        self, points: Float[np.ndarray, "k d"]
    ) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k k"]]:
        """Mean and covariance of the function at the points."""
        mean = (self.belief.moments(points).mean - self.level) / self.unit
        return mean, self.belief.covariance(points) / self.unit**2


class BeliefModel(Model):
    """Independent beliefs as the outputs of one model, without gradients."""

    def __init__(self, beliefs: Sequence[ScaledBelief]):
        super().__init__()
        self.beliefs = beliefs

    @property
    def num_outputs(self) -> int:
        return len(self.beliefs)

    @property
    def batch_shape(self) -> torch.Size:
        return torch.Size()

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Any = None,
    ) -> GPyTorchPosterior:
        """Joint posterior of the functions at points (..., q, d) of the unit cube."""
        rows = X.detach().numpy().reshape(-1, X.shape[-1])
        # Baseline and pending points come again with every candidate.
        points, index = np.unique(rows, axis=0, return_inverse=True)
        index = index.reshape(X.shape[:-1])
        jitter, parts = JITTER * np.eye(X.shape[-2]), []
        for belief in self.beliefs:
            mean, covariance = belief.joint(points)
            own = covariance[index[..., :, None], index[..., None, :]] + jitter
            parts.append(MultivariateNormal(torch.tensor(mean[index]), torch.tensor(own)))
        return GPyTorchPosterior(MultitaskMultivariateNormal.from_independent_mvns(parts))


def _spread(belief: ConditionedBelief, candidates: Float[np.ndarray, "k d"]) -> float:
    """How far values at the candidates are from each other."""
    moments = belief.moments(candidates)
    spread = math.sqrt(np.var(moments.mean) + np.mean(moments.function_variance))
    return spread if spread > 0.0 else 1.0


def _excess(output: int, samples: Tensor) -> Tensor:
    """How far a constraint is exceeded; beliefs are about its negative."""
    return -samples[..., output]
