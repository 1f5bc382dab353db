r"""F-PACOH-MAP in GPyTorch: one task after another, automatic gradients, library algebra.

This is how the method reads when written down directly in PyTorch, and it serves twice: as the
oracle for our objective and its gradients, and as the opponent in timings. It shares no code with
`metaprior`.

| symbol | here | shape |
|---|---|---|
| $m_\phi$ | `prior.mean_module`, a network | `(T,)` on `T` inputs |
| $k_\phi$ | squared exponential on the features of a second network | `(T, T)` |
| $\sigma^2_P$ | `likelihood.noise`, kept as its logarithm | `(1,)` |
| $\rho$ | `ZeroMeanPrior`, the hyper-prior | |
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import gpytorch
import numpy as np
import torch
from gpytorch.constraints import Positive
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch.distributions import kl_divergence

DTYPE = torch.float64
HIDDEN_SIZES = (32, 32, 32)

# Keys of a parameter dictionary, as numpy arrays. Weights are (outputs, inputs), one per layer.
NETWORK_KEYS = ("mean_weights", "mean_biases", "feature_weights", "feature_biases")
SCALAR_KEYS = ("log_variance", "log_lengthscale", "log_noise_variance")


def _kept_as_logarithm() -> Positive:
    """A constraint whose raw, optimised parameter is the logarithm of the constrained one."""
    return Positive(transform=torch.exp, inv_transform=torch.log)


def _squared_exponential() -> ScaleKernel:
    r"""$v \exp(-\|x - x'\|^2 / (2 \ell^2))$, with $\ln v$ and $\ln \ell$ as parameters."""
    base = RBFKernel(lengthscale_constraint=_kept_as_logarithm())
    return ScaleKernel(base, outputscale_constraint=_kept_as_logarithm()).to(DTYPE)


def _network(sizes: Sequence[int]) -> torch.nn.Sequential:
    """Linear layers of these sizes with tanh between them and none after the last."""
    layers: list[torch.nn.Module] = []
    for size_in, size_out in zip(sizes[:-1], sizes[1:], strict=True):
        layers += [torch.nn.Linear(size_in, size_out), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1]).to(DTYPE)


class NetworkMean(gpytorch.means.Mean):
    r"""$m_\phi(x)$, a network with one output."""

    def __init__(self, sizes: Sequence[int]):
        super().__init__()
        self.network = _network(sizes)

    def forward(self, x):
        return self.network(x).squeeze(-1)


class NetworkPrior(gpytorch.models.GP):
    r"""$\mathcal{GP}(m_\phi(x), k(\Phi_\phi(x), \Phi_\phi(x')))$, with a network $\Phi_\phi$."""

    def __init__(self, mean_sizes: Sequence[int], feature_sizes: Sequence[int]):
        super().__init__()
        self.mean_module = NetworkMean(mean_sizes)
        self.features = _network(feature_sizes)
        self.covar_module = _squared_exponential()

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(self.features(x)))


class ZeroMeanPrior(gpytorch.models.GP):
    """The hyper-prior: zero mean and a fixed squared exponential kernel on the inputs."""

    def __init__(self, lengthscale: float, variance: float):
        super().__init__()
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = _squared_exponential()
        # GPyTorch rounds Python floats to single precision on their way into a parameter.
        self.covar_module.base_kernel.lengthscale = torch.tensor(lengthscale, dtype=DTYPE)
        self.covar_module.outputscale = torch.tensor(variance, dtype=DTYPE)
        self.requires_grad_(False)

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Trained(NamedTuple):
    """What `ReferenceFPacoh.train` returns."""

    losses: np.ndarray
    """The objective on each step's batch of tasks, `(num_steps,)`."""
    learning_rate: float
    """The learning rate after the last step."""


class ReferenceFPacoh:
    """An F-PACOH-MAP prior, its objective, gradients and meta-training loop.

    Inputs and outputs are standardised by the caller. `parameters` holds numpy arrays: lists
    `mean_weights`, `mean_biases`, `feature_weights`, `feature_biases` with one entry per layer
    (weights as `(outputs, inputs)`), and scalars `log_variance`, `log_lengthscale`,
    `log_noise_variance`.
    """

    def __init__(self, parameters: dict):
        missing = [key for key in (*NETWORK_KEYS, *SCALAR_KEYS) if key not in parameters]
        if missing:
            raise ValueError(f"Parameters {missing} are missing; give all of a prior's parameters.")
        self.prior = NetworkPrior(
            _layer_sizes(parameters["mean_weights"]), _layer_sizes(parameters["feature_weights"])
        )
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_constraint=_kept_as_logarithm()
        ).to(DTYPE)
        with torch.no_grad():
            for key, tensors in self._named_tensors().items():
                arrays = parameters[key] if key in NETWORK_KEYS else [parameters[key]]
                for tensor, array in zip(tensors, arrays, strict=True):
                    values = torch.as_tensor(np.asarray(array, dtype=np.float64))
                    tensor.copy_(values.reshape(tensor.shape))

    @classmethod
    def random(cls, input_dim: int, *, seed: int, feature_dim: int = 2) -> "ReferenceFPacoh":
        """A prior with PyTorch's default network initialisation and unit scales."""
        # torch.nn draws from the process-wide generator: fork it, so that no one else is reseeded.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            mean = _network((input_dim, *HIDDEN_SIZES, 1))
            features = _network((input_dim, *HIDDEN_SIZES, feature_dim))
        return cls(
            {
                "mean_weights": [layer.weight.detach().numpy() for layer in mean[::2]],
                "mean_biases": [layer.bias.detach().numpy() for layer in mean[::2]],
                "feature_weights": [layer.weight.detach().numpy() for layer in features[::2]],
                "feature_biases": [layer.bias.detach().numpy() for layer in features[::2]],
                "log_variance": np.log(1.0),
                "log_lengthscale": np.log(1.0),
                "log_noise_variance": np.log(0.1),
            }
        )

    def parameters(self) -> dict:
        """A copy of all parameters, in the form that the constructor takes."""
        return self._as_arrays(lambda tensor: tensor)

    def objective(
        self,
        x_list: Sequence[np.ndarray],
        y_list: Sequence[np.ndarray],
        measurement_list: Sequence[np.ndarray],
        num_tasks: int,
        kappa: float,
        hyper_lengthscale: float,
        hyper_variance: float,
        jitter: float,
    ) -> float:
        r"""The F-PACOH-MAP objective on a batch of $H$ tasks with given measurement sets $X_i$.

        $$ J = \frac1H \sum_{i=1}^H \Big[ -\frac{\ln Z_i}{T_i}
           + \kappa \Big( \frac{1}{\sqrt n} + \frac{1}{n T_i} \Big) \mathrm{KL}_i \Big] $$
        $$ \ln Z_i = \ln \mathcal{N}(y_i; m_\phi, K_\phi + \sigma^2_P I + \epsilon I), \quad
           \mathrm{KL}_i = \mathrm{KL}\big( \mathcal{N}(m_\phi, K_\phi + \epsilon I) \,\|\,
           \mathcal{N}(0, K_\rho + \epsilon I) \big) \text{ on } X_i $$

        - `x_list`, `y_list`, `measurement_list`: per task `(T_i, d)`, `(T_i,)` and `(L_i, d)`.
        - `num_tasks`: $n$, the number of all tasks, not of this batch.
        - `hyper_lengthscale`, `hyper_variance`: $\ell$ and $v$ of the hyper-prior's kernel.
        - `jitter`: $\epsilon$, the same in all three covariances.
        """
        hyper_prior = ZeroMeanPrior(hyper_lengthscale, hyper_variance)
        batch = _as_tensors(x_list, y_list, measurement_list)
        with torch.no_grad():
            return self._objective(batch, hyper_prior, num_tasks, kappa, jitter).item()

    def gradients(
        self,
        x_list: Sequence[np.ndarray],
        y_list: Sequence[np.ndarray],
        measurement_list: Sequence[np.ndarray],
        num_tasks: int,
        kappa: float,
        hyper_lengthscale: float,
        hyper_variance: float,
        jitter: float,
    ) -> dict:
        """The gradient of `objective`, in the same form as the parameters."""
        hyper_prior = ZeroMeanPrior(hyper_lengthscale, hyper_variance)
        batch = _as_tensors(x_list, y_list, measurement_list)
        for parameter in self._trainable():
            parameter.grad = None
        self._objective(batch, hyper_prior, num_tasks, kappa, jitter).backward()
        return self._as_arrays(lambda tensor: tensor.grad)

    def train(
        self,
        x: Sequence[np.ndarray],
        y: Sequence[np.ndarray],
        *,
        num_steps: int,
        batch_size: int,
        seed: int,
        lower: float | np.ndarray = 0.0,
        upper: float | np.ndarray = 1.0,
        learning_rate: float = 1e-3,
        learning_rate_decay: float = 0.9,
        weight_decay: float = 1e-3,
        kappa: float = 0.1,
        hyper_lengthscale: float = 0.3,
        hyper_variance: float = 1.0,
        jitter: float = 1e-6,
        num_from_data: int = 10,
        num_uniform: int = 10,
    ) -> Trained:
        """Meta-train in place with AdamW; the learning rate decays every 1000 steps.

        - `x`, `y`: all tasks, each `(T_i, d)` and `(T_i,)`.
        - `lower`, `upper`: the box of the uniform measurement points, in the units of `x`.
        - `num_from_data`, `num_uniform`: the make-up of a measurement set.
        """
        if not 1 <= batch_size <= len(x):
            raise ValueError(
                f"A batch of {batch_size} tasks cannot be drawn without replacement from {len(x)}; "
                f"choose batch_size between 1 and {len(x)}."
            )
        rng = np.random.default_rng(seed)
        hyper_prior = ZeroMeanPrior(hyper_lengthscale, hyper_variance)
        optimiser = torch.optim.AdamW(
            self._trainable(), lr=learning_rate, weight_decay=weight_decay
        )
        schedule = torch.optim.lr_scheduler.StepLR(optimiser, 1000, gamma=learning_rate_decay)
        losses = np.empty(num_steps)
        for step in range(num_steps):
            chosen = rng.choice(len(x), batch_size, replace=False)
            points = [
                measurement_set(x[i], lower, upper, num_from_data, num_uniform, rng) for i in chosen
            ]
            batch = _as_tensors([x[i] for i in chosen], [y[i] for i in chosen], points)
            optimiser.zero_grad()
            loss = self._objective(batch, hyper_prior, len(x), kappa, jitter)
            loss.backward()
            optimiser.step()
            schedule.step()
            losses[step] = loss.item()
        return Trained(losses, schedule.get_last_lr()[0])

    def _objective(self, batch, hyper_prior, num_tasks, kappa, jitter) -> torch.Tensor:
        total = torch.zeros((), dtype=DTYPE)
        for x, y, points in batch:
            marginal = self.likelihood(self.prior(x)).add_jitter(jitter)
            fit = -marginal.log_prob(y) / len(y)
            # Jitter on both sides: on one side only, the divergence would mostly measure jitter.
            divergence = kl_divergence(
                self.prior(points).add_jitter(jitter), hyper_prior(points).add_jitter(jitter)
            )
            weight = kappa * (1 / math.sqrt(num_tasks) + 1 / (num_tasks * len(y)))
            total = total + fit + weight * divergence
        return total / len(batch)

    def _named_tensors(self) -> dict[str, list[torch.Tensor]]:
        mean, features = self.prior.mean_module.network[::2], self.prior.features[::2]
        return {
            "mean_weights": [layer.weight for layer in mean],
            "mean_biases": [layer.bias for layer in mean],
            "feature_weights": [layer.weight for layer in features],
            "feature_biases": [layer.bias for layer in features],
            "log_variance": [self.prior.covar_module.raw_outputscale],
            "log_lengthscale": [self.prior.covar_module.base_kernel.raw_lengthscale],
            "log_noise_variance": [self.likelihood.noise_covar.raw_noise],
        }

    def _trainable(self) -> list[torch.Tensor]:
        return [tensor for tensors in self._named_tensors().values() for tensor in tensors]

    def _as_arrays(self, read) -> dict:
        """`read` of every parameter as a fresh numpy array: lists for networks, 0-d for scalars."""
        arrays = {
            key: [read(tensor).detach().numpy().copy() for tensor in tensors]
            for key, tensors in self._named_tensors().items()
        }
        return arrays | {key: arrays[key][0].reshape(()) for key in SCALAR_KEYS}


def measurement_set(
    x: np.ndarray,
    lower: float | np.ndarray,
    upper: float | np.ndarray,
    num_from_data: int,
    num_uniform: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Rows of `x` drawn without replacement, then points uniform in the box from lower to upper.

    A task with fewer than `num_from_data` points gives all of them, and uniform points make up the
    difference, so that every set has the same size.
    """
    taken = min(num_from_data, len(x))
    rows = rng.choice(len(x), taken, replace=False)
    num_free = num_from_data + num_uniform - taken
    return np.concatenate([x[rows], rng.uniform(lower, upper, (num_free, x.shape[1]))])


def _layer_sizes(weights: Sequence[np.ndarray]) -> list[int]:
    """`[inputs, outputs of layer 1, ..., outputs of the last layer]`."""
    return [np.shape(weights[0])[1], *(np.shape(weight)[0] for weight in weights)]


def _as_tensors(x_list, y_list, measurement_list):
    """The batch as `[(x, y, measurement points), ...]` in double precision."""
    tasks = zip(x_list, y_list, measurement_list, strict=True)
    return [tuple(torch.as_tensor(np.asarray(a), dtype=DTYPE) for a in task) for task in tasks]
