r"""Gaussian processes as torch modules, and their exact posteriors.

    symbol      meaning                                                 shape
    x           points, of any batch                                    (..., n, d)
    m           prior mean, in standardised units                       (..., K, n)
    k           prior covariance                                        (..., K, n, n)
    L           Cholesky factor of k + noise + jitter                   (..., K, n, n)
    alpha       (k + noise + jitter)^{-1} (y - m)                       (..., K, n, 1)

A value in the units of the run is `level + unit * standardised value`. What the formulas mean is in
`metaprior.belief`; here they are differentiable, and batched.
"""

from typing import NamedTuple

import torch
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor
from torch.nn import Module, Sequential

from metaprior.adapters.botorch._buffers import keep
from metaprior.adapters.botorch._kernels import torch_kernel
from metaprior.adapters.botorch._maps import TorchView, torch_map
from metaprior.belief import FrozenProcesses

# Of a function's variance, in standardised units: as the belief has it.
VARIANCE_FLOOR = 1e-12


class Seen(NamedTuple):
    """Points as the processes see them."""

    mean: Tensor
    features: Tensor


class MemberJoints(NamedTuple):
    """Joint distribution of the function under each member, in the units of the run."""

    mean: Tensor
    covariance: Tensor


class TorchProcesses(Module):
    """Processes before the run, one per member: `FrozenProcesses` in torch."""

    x_mean: Tensor
    x_std: Tensor
    offset_variance: Tensor
    amplitude_variance: Tensor
    scale: Tensor
    noise_variance: Tensor
    jitter: Tensor
    level: Tensor
    unit: Tensor

    def __init__(self, frozen: FrozenProcesses, sign: float):
        super().__init__()
        processes = frozen.processes
        self.view = Sequential(*(TorchView(view) for view in frozen.views))
        self.warp = torch_map(processes.warp)
        self.mean = torch_map(processes.mean)
        self.features = torch_map(processes.features)
        self.kernel = torch_kernel(processes.kernel)
        keep(
            self,
            x_mean=processes.x_mean[:, None, :],
            x_std=processes.x_std[:, None, :],
            offset_variance=processes.offset_variance[:, None, None],
            amplitude_variance=processes.amplitude_variance[:, None, None],
            scale=frozen.scale[:, None, None],
            noise_variance=frozen.noise_variance[:, None],
            jitter=frozen.jitter[:, None],
            level=sign * frozen.level[:, None],
            unit=sign * frozen.unit[:, None],
        )

    def embed(self, x: Tensor) -> Seen:
        """The points as each process sees them."""
        z = (self.view(x).unsqueeze(-3) - self.x_mean) / self.x_std
        z = self.warp(z)
        return Seen(self.mean(z).squeeze(-1), self.features(z))

    def covariance(self, a: Seen, b: Seen) -> Tensor:
        """Prior covariances of values at `a` and `b`, in standardised units."""
        effects = self.amplitude_variance * a.mean.unsqueeze(-1) * b.mean.unsqueeze(-2)
        return self.scale * (self.kernel(a.features, b.features) + self.offset_variance + effects)

    def own_noise(self, shape: torch.Size) -> Tensor:
        """The learned noise variance of points of that shape, (..., n)."""
        members = self.noise_variance.shape[0]
        return self.noise_variance.expand(*shape[:-1], members, shape[-1])

    def given_noise(self, variance: Tensor) -> Tensor:
        """Noise variances (..., n) in the units of the run, as each member sees them."""
        return variance.unsqueeze(-2) / self.unit**2


class TorchConditioned(Module):
    """The posterior of processes after a run.

    - `x`, `y`: points (..., n, d) and values (..., n); `noise`: of each member, (..., K, n).
    """

    seen_mean: Tensor
    seen_features: Tensor
    factor: Tensor
    alpha: Tensor

    def __init__(self, processes: TorchProcesses, x: Tensor, y: Tensor, noise: Tensor):
        super().__init__()
        self.processes = processes
        seen = processes.embed(x)
        covariance = processes.covariance(seen, seen)
        covariance = covariance + torch.diag_embed(noise + processes.jitter)
        factor = psd_safe_cholesky(covariance)
        residual = (y.unsqueeze(-2) - processes.level) / processes.unit - seen.mean
        alpha = torch.cholesky_solve(residual.unsqueeze(-1), factor)
        # Buffers, so that they move with the model; made anew when a state is loaded.
        self.register_buffer("seen_mean", seen.mean, persistent=False)
        self.register_buffer("seen_features", seen.features, persistent=False)
        self.register_buffer("factor", factor, persistent=False)
        self.register_buffer("alpha", alpha, persistent=False)

    def joints(self, x: Tensor) -> MemberJoints:
        """Joint distributions of the function at points (..., q, d)."""
        processes, at = self.processes, self.processes.embed(x)
        between = processes.covariance(Seen(self.seen_mean, self.seen_features), at)
        mean = at.mean + (between * self.alpha).sum(dim=-2)
        half = torch.linalg.solve_triangular(self.factor, between, upper=False)
        covariance = processes.covariance(at, at) - half.mT @ half
        variance = covariance.diagonal(dim1=-2, dim2=-1)
        lifted = torch.diag_embed((VARIANCE_FLOOR - variance).clamp(min=0.0))
        unit = processes.unit
        mean, covariance = torch.broadcast_tensors(mean.unsqueeze(-1), covariance + lifted)
        return MemberJoints(
            processes.level + unit * mean[..., 0], unit.unsqueeze(-1) ** 2 * covariance
        )
