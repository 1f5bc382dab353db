"""BoTorch over the rows of a table; imported only where BoTorch is installed."""

import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from jaxtyping import Float

NUM_RANDOM = 3


def order_by_log_improvement(
    x: Float[np.ndarray, "m d"], y: Float[np.ndarray, " m"], num: int, seed: int
) -> list[int]:
    """The rows that a `SingleTaskGP`, fitted again after each, asks by log-EI."""
    points, values = torch.as_tensor(x), torch.as_tensor(y)
    order = np.random.default_rng(seed).permutation(len(y))[:NUM_RANDOM].tolist()
    while len(order) < num:
        own = values[order]
        own = (own - own.mean()) / own.std().clamp_min(1e-9)
        model = SingleTaskGP(points[order], own[:, None])
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        with torch.no_grad():
            worth = LogExpectedImprovement(model, own.max())(points[:, None]).numpy()
        worth[order] = -np.inf
        order.append(int(np.argmax(worth)))
    return order
