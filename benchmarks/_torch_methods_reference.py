r"""PACOH-MAP in GPyTorch and ABLR in PyTorch: one task after another.

Like `benchmarks._gpytorch_reference`, from which the Gaussian process comes, they are oracles for
our objectives and opponents in timings, and share no code with `metaprior`. A model knows the
lengths $T_i$ of all $n$ tasks, and `loss(batch)` is its objective on a batch of $H$ of them.

| symbol | here | shape |
|---|---|---|
| $\Phi$, $y$ | features and values of a task | `(T, D)`, `(T,)` |
| $a$ | variance of the weights, $1 / \alpha$ | `()` |
| $s$ | noise variance, $1 / \beta$, plus the jitter | `()` |
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.utils import parameters_to_vector

from benchmarks._gpytorch_reference import DTYPE, HIDDEN_SIZES, ReferenceFPacoh, Trained

Batch = Sequence[tuple[torch.Tensor, torch.Tensor]]


class ReferencePacoh(torch.nn.Module):
    """A PACOH-MAP prior: the Gaussian process of `ReferenceFPacoh`, with its `parameters`."""

    def __init__(
        self,
        parameters: dict,
        lengths: Sequence[int],
        *,
        kappa: float,
        hyper_prior_variance: float,
        jitter: float,
    ):
        super().__init__()
        process = ReferenceFPacoh(parameters)
        self.prior, self.likelihood = process.prior, process.likelihood
        num_tasks, harmonic_length = len(lengths), 1 / np.mean(1 / np.asarray(lengths))
        self.weight = kappa * (1 / math.sqrt(num_tasks) + 1 / (num_tasks * harmonic_length))
        self.hyper_prior_variance = hyper_prior_variance
        self.jitter = jitter

    def loss(self, batch: Batch) -> torch.Tensor:
        r"""$$ J = -\frac1H \sum_{i=1}^H \frac{\ln Z_i}{T_i}
           + \kappa \Big( \frac{1}{\sqrt n} + \frac{1}{n \tilde T} \Big)
             \frac{\|\phi\|^2}{2 \sigma_P^2}, \qquad
           \ln Z_i = \ln \mathcal{N}(y_i; m_\phi, K_\phi + \sigma^2 I + \epsilon I) $$

        with $\tilde T$ the harmonic mean of all lengths and $\epsilon$ the jitter. $\phi$ are all
        parameters; kernel and noise are kept as logarithms and count as these.
        """
        fit = torch.zeros((), dtype=DTYPE)
        for x, y in batch:
            marginal = self.likelihood(self.prior(x)).add_jitter(self.jitter)
            fit = fit - marginal.log_prob(y) / len(y)
        squares = parameters_to_vector(self.parameters()).square().sum()
        return fit / len(batch) + self.weight * squares / (2 * self.hyper_prior_variance)


class ReferenceAblr(torch.nn.Module):
    """Bayesian linear regression on the outputs of a network with tanh after every layer.

    `parameters` holds lists `weights` and `biases` with one array per layer (weights as
    `(outputs, inputs)`), and scalars `log_weight_precision` and `log_noise_precision`.
    """

    def __init__(self, parameters: dict, lengths: Sequence[int], *, jitter: float):
        super().__init__()
        layers: list[torch.nn.Module] = []
        for weight, bias in zip(parameters["weights"], parameters["biases"], strict=True):
            size_out, size_in = np.shape(weight)
            linear = torch.nn.Linear(size_in, size_out, dtype=DTYPE)
            linear.weight, linear.bias = _parameter(weight), _parameter(bias)
            layers += [linear, torch.nn.Tanh()]
        self.features = torch.nn.Sequential(*layers)
        self.log_weight_precision = _parameter(parameters["log_weight_precision"])
        self.log_noise_precision = _parameter(parameters["log_noise_precision"])
        self.mean_length = float(np.mean(lengths))
        self.jitter = jitter

    def loss(self, batch: Batch) -> torch.Tensor:
        r"""$$ J = -\frac1H \sum_{i=1}^H \frac{\ln Z_i}{\bar T}, \qquad
           \ln Z_i = \ln \mathcal{N}(y_i; 0, a \Phi_i \Phi_i^\top + s I) $$

        with $\bar T$ the mean of all lengths.
        """
        total = torch.zeros((), dtype=DTYPE)
        for x, y in batch:
            total = total - self.log_evidence(self.features(x), y)
        return total / (len(batch) * self.mean_length)

    def log_evidence(self, features: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        r"""$\ln Z$, factoring the smaller of $C = a \Phi \Phi^\top + s I$ and
        $B = I + \frac as \Phi^\top \Phi$. With $B = L L^\top$,

        $$ y^\top C^{-1} y = \frac1s \Big( \|y\|^2 - \frac as \|L^{-1} \Phi^\top y\|^2 \Big),
           \qquad |C| = s^T |B|. $$
        """
        weight_variance = torch.exp(-self.log_weight_precision)
        noise_variance = torch.exp(-self.log_noise_precision) + self.jitter
        count, dimension = features.shape
        if count <= dimension:
            noise = noise_variance * torch.eye(count, dtype=DTYPE)
            factor = torch.linalg.cholesky(weight_variance * features @ features.T + noise)
            quadratic = _solve(factor, y).square().sum()
            log_determinant = 2 * factor.diagonal().log().sum()
        else:
            ratio = weight_variance / noise_variance
            identity = torch.eye(dimension, dtype=DTYPE)
            factor = torch.linalg.cholesky(identity + ratio * features.T @ features)
            explained = ratio * _solve(factor, features.T @ y).square().sum()
            quadratic = (y.square().sum() - explained) / noise_variance
            log_determinant = 2 * factor.diagonal().log().sum() + count * noise_variance.log()
        return -0.5 * (quadratic + log_determinant + count * math.log(2 * math.pi))


def random_ablr_parameters(input_dim: int, *, seed: int) -> dict:
    """PyTorch's default network initialisation, unit weight variance, noise variance 0.01."""
    sizes = (input_dim, *HIDDEN_SIZES)
    # torch.nn draws from the process-wide generator: fork it, so that no one else is reseeded.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = [torch.nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:], strict=True)]
    return {
        "weights": [layer.weight.detach().numpy() for layer in layers],
        "biases": [layer.bias.detach().numpy() for layer in layers],
        "log_weight_precision": 0.0,
        "log_noise_precision": -math.log(1e-2),
    }


def meta_train(
    model: ReferencePacoh | ReferenceAblr,
    x: Sequence[np.ndarray],
    y: Sequence[np.ndarray],
    *,
    num_steps: int,
    batch_size: int,
    seed: int,
    learning_rate: float = 4e-3,
    learning_rate_decay: float = 0.9,
    weight_decay: float = 0.0,
) -> Trained:
    """Meta-train `model` in place with AdamW; the learning rate decays every 1000 steps.

    - `x`, `y`: all tasks, each `(T_i, d)` and `(T_i,)`, standardised.
    - `weight_decay`: of the networks' weights; biases and logarithms do not decay.
    """
    rng = np.random.default_rng(seed)
    tasks = as_batch(x, y)
    named = list(model.named_parameters())
    weights = [tensor for name, tensor in named if name.endswith("weight")]
    others = [tensor for name, tensor in named if not name.endswith("weight")]
    groups = [{"params": weights, "weight_decay": weight_decay}, {"params": others}]
    optimiser = torch.optim.AdamW(groups, lr=learning_rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, 1000, gamma=learning_rate_decay)
    losses = np.empty(num_steps)
    for step in range(num_steps):
        chosen = rng.choice(len(tasks), batch_size, replace=False)
        optimiser.zero_grad()
        loss = model.loss([tasks[i] for i in chosen])
        loss.backward()
        optimiser.step()
        schedule.step()
        losses[step] = loss.item()
    return Trained(losses, schedule.get_last_lr()[0])


def as_batch(x: Sequence[np.ndarray], y: Sequence[np.ndarray]) -> Batch:
    """Tasks as pairs of tensors in double precision."""
    return [(_tensor(a), _tensor(b)) for a, b in zip(x, y, strict=True)]


def _solve(factor: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    r"""$L^{-1} v$ for a lower triangular $L$."""
    return torch.linalg.solve_triangular(factor, vector[:, None], upper=False)


def _parameter(values) -> torch.nn.Parameter:
    return torch.nn.Parameter(_tensor(values))


def _tensor(values) -> torch.Tensor:
    return torch.tensor(np.asarray(values), dtype=DTYPE)
