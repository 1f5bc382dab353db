"""One step of Bayesian optimisation as BoTorch's users write it: the opponent without a history."""

from typing import NamedTuple

import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.optim import optimize_acqf
from botorch.utils.sampling import manual_seed
from gpytorch.mlls import ExactMarginalLogLikelihood

DTYPE = torch.float64


class Suggestion(NamedTuple):
    """A proposed query and what led to it."""

    x: np.ndarray
    """The query, `(d,)`, in the units of the bounds."""
    acquisition_value: float
    """The upper confidence bound at `x`, in the units of `y`."""
    model: SingleTaskGP
    """The fitted model."""
    acquisition: UpperConfidenceBound
    """The acquisition function that `x` maximises, for `evaluate`."""

    def evaluate(self, points: np.ndarray) -> np.ndarray:
        """The acquisition function at other points: `(k, d)` to `(k,)`."""
        with torch.no_grad():
            return self.acquisition(torch.as_tensor(points, dtype=DTYPE).unsqueeze(-2)).numpy()


def ask(
    x: np.ndarray,
    y: np.ndarray,
    bounds: np.ndarray,
    *,
    beta: float = 4.0,
    num_restarts: int = 10,
    raw_samples: int = 512,
    seed: int = 0,
) -> Suggestion:
    r"""The next query of a GP fitted to one run, by $\mu(x) + \sqrt{\beta}\,\sigma(x)$.

    The model is BoTorch's default `SingleTaskGP` on inputs scaled to the unit cube, with
    hyper-parameters fitted anew. BoTorch's $\sigma$ is that of the noise-free function.

    - `x`, `y`: the run so far, `(n, d)` and `(n,)` with at least one point; `y` is maximised.
    - `bounds`: lower bounds, then upper bounds, `(2, d)`.
    - `beta`: the square of the factor of the standard deviation.
    """
    x, y, bounds = (np.asarray(a, dtype=np.float64) for a in (x, y, bounds))
    if x.ndim != 2 or len(x) == 0 or y.shape != (len(x),):
        raise ValueError(
            f"A run needs x of shape (n, d) and y of shape (n,) with n at least 1, "
            f"got {x.shape} and {y.shape}; draw the first query at random."
        )
    if bounds.shape != (2, x.shape[1]):
        raise ValueError(
            f"Bounds of {x.shape[1]} dimensions have shape (2, {x.shape[1]}), got {bounds.shape}; "
            "give the lower bounds first, then the upper bounds."
        )
    box = torch.as_tensor(bounds)
    with manual_seed(seed):
        model = _fitted(x, y, box)
        acquisition = UpperConfidenceBound(model, beta=beta)
        candidate, value = optimize_acqf(
            acquisition, bounds=box, q=1, num_restarts=num_restarts, raw_samples=raw_samples
        )
    return Suggestion(candidate.squeeze(0).numpy(), value.item(), model, acquisition)


def ask_log_improvement(
    x: np.ndarray, y: np.ndarray, bounds: np.ndarray, *, seed: int = 0
) -> np.ndarray:
    """The next query by log expected improvement, with BoTorch's usual effort."""
    box = torch.as_tensor(bounds)
    with manual_seed(seed):
        acquisition = LogExpectedImprovement(_fitted(x, y, box), best_f=float(np.max(y)))
        candidate, _ = optimize_acqf(acquisition, bounds=box, q=1, num_restarts=10, raw_samples=512)
    return candidate.squeeze(0).numpy()


def _fitted(x: np.ndarray, y: np.ndarray, box: torch.Tensor) -> SingleTaskGP:
    """BoTorch's default model with hyper-parameters fitted to one run."""
    model = SingleTaskGP(
        torch.as_tensor(x),
        torch.as_tensor(y).unsqueeze(-1),
        input_transform=Normalize(x.shape[1], bounds=box),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model
