"""F-PACOH-BNN: a distribution over the weights of a network, regularised in the function space.

Rothfuss, Heyn, Chen and Krause, "Meta-Learning Reliable Priors in the Function Space",
NeurIPS 2021, section 4.3: a prior of which only samples are known.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.data import Run, Standardiser, Tasks
from metaprior.gp import AbstractProcess, Spread
from metaprior.meta import (
    MetaData,
    NetworkObjective,
    NetworkPrior,
    Observations,
    antithetic_normals,
    measurement_sizes,
    network_prior,
)
from metaprior.methods._gradient import AbstractGradientMethod
from metaprior.methods._hyper_prior import estimator_of, hyper_prior_of
from metaprior.methods._method import AbstractSurrogate, Moments, require_depth, traced
from metaprior.methods._mixture import AbstractParticlePosterior
from metaprior.methods._randomised_map import posterior_particles, refine_network

# What a fair random search should cover.
SEARCH_RANGES = {
    "kappa": ("log-uniform", 1e-3, 1.0),
    "hyper_lengthscale": ("log-uniform", 0.05, 0.5),
    "initial_std": ("log-uniform", 0.05, 0.5),
    "learning_rate": ("log-uniform", 1e-3, 3e-2),
    "learning_rate_decay": ("log-uniform", 0.8, 1.0),
    "weight_decay": ("log-uniform", 1e-5, 1e-1),
    "num_steps": ("choice", [2000, 3000, 4000]),
    "batch_size": ("choice", [4, 10]),
    "num_samples": ("choice", [64, 128]),
    "newton_steps": ("choice", [1, 2, 3]),
    "width": ("choice", [16, 24, 32]),
    "depth": ("choice", [1, 2]),
}


class NetworkPosterior(AbstractParticlePosterior):
    r"""Networks drawn from the posterior, smoothed into a density at every point.

    A draw of $K$ functions has gaps between them that the posterior does not have. Their values
    $h_k$ at a point, with mean $m$ and variance $v$, become the components

    $$ N\big( m + \sqrt{1 - b^2} \, (h_k - m), \; b^2 v \big), \qquad b = K^{-1/5}, $$

    a kernel density estimate with Silverman's bandwidth that keeps mean and variance.
    """

    prior: NetworkPrior
    standardiser: Standardiser
    particles: Float[Array, "k p"]

    def components(self, x):
        scale = self.standardiser.y_std
        values = self.functions(x)
        mean, bandwidth = jnp.mean(values), values.shape[0] ** -0.2
        return Moments(
            mean + jnp.sqrt(1.0 - bandwidth**2) * (values - mean),
            jnp.full(values.shape, bandwidth**2 * jnp.var(values)),
            jnp.full(values.shape, scale**2 * self.prior.noise_variance),
        )

    def functions(self, x):
        return self._values(self.particles, x)

    def sample(self, x, num, *, key):
        chosen = self.particles[jax.random.randint(key, (num,), 0, self.particles.shape[0])]
        return jax.vmap(lambda x: self._values(chosen, x), out_axes=1)(x)

    def path(self, anchors, *, key):
        # Every particle is a whole function: nothing needs to be interpolated.
        chosen = jax.random.choice(key, self.particles)[None, :]
        return lambda x: self._values(chosen, x)[0]

    def _values(self, whitened: Float[Array, "k p"], x: Float[Array, " d"]) -> Float[Array, " k"]:
        """The functions with these weights at `x`, in the units of `y`."""
        values = self.prior.functions(whitened, self.standardiser.x(x)[None, :])[:, 0]
        return self.standardiser.y_mean + self.standardiser.y_std * values


class NetworkSurrogate(AbstractSurrogate):
    """A prior over networks, used through a fixed set of draws from it.

    - `anchors`: the draws, which a run changes as little as it takes to explain it.
    - `spread`: how far noise variance and scale of a new run may be from the learned ones.
    - `num_steps`: Gauss-Newton steps of each draw.
    """

    prior: NetworkPrior
    standardiser: Standardiser
    anchors: Float[Array, "k p"]
    spread: Spread
    num_steps: int = eqx.field(static=True)

    def condition(self, run: Run) -> NetworkPosterior:
        observed = Observations(
            jnp.where(run.mask[:, None], self.standardiser.x(run.x), 0.0),
            jnp.where(run.mask, self.standardiser.y(run.y), 0.0),
            run.mask,
        )
        prior = refine_network(self.prior, observed, self.spread)
        particles = posterior_particles(
            prior, observed, self.anchors, self.prior.noise_variance, self.num_steps
        )
        return NetworkPosterior(prior, self.standardiser, particles)


@dataclass(frozen=True)
class FPacohBNN(AbstractGradientMethod):
    """F-PACOH with a Bayesian neural network. All numbers refer to standardised units.

    - `initial_std`: standard deviation of the weights before training, in units of their size.
    - `width`, `depth`: units in a hidden layer, and number of hidden layers.
    - `num_samples`: networks drawn in each step, for the likelihood and for the score of the prior.
    - `newton_steps`: Gauss-Newton steps towards each run of a batch, near which as many networks
      again are drawn for its likelihood; with 0 those drawn from the prior stand alone.
    - `score_estimator`: "spectral" (Stein gradient estimator) or "sliced" (score matching).
    - `num_particles`: networks drawn from the posterior, for predictions; even, for they start
      from pairs of opposites.
    - `posterior_steps`: Gauss-Newton steps that each of them takes.
    - `noise_log_spread`, `scale_log_spread`: how far the noise variance and the variance of the
      weights of a new run may be from the learned ones, in logarithms; with 0 they are kept.

    All others mean what they mean in `FPacohMap`.
    """

    kappa: float = traced(0.05)
    hyper_lengthscale: float = traced(0.18)
    hyper_variance: float = traced(1.0)
    initial_std: float = traced(0.15)
    learning_rate: float = traced(1e-2)
    learning_rate_decay: float = traced(0.88)
    weight_decay: float = traced(3e-2)
    num_steps: int = 3000
    batch_size: int = 4
    width: int = 24
    depth: int = 2
    num_samples: int = 64
    newton_steps: int = 2
    num_measurements: int = 20
    measurements_from_task: int = 10
    measurement_variance: float = traced(2e-4)
    noise_log_spread: float = traced(4.0)
    scale_log_spread: float = traced(1.0)
    num_particles: int = 32
    posterior_steps: int = 12
    hyper_prior: AbstractProcess | None = None
    score_estimator: str = "spectral"

    def __post_init__(self) -> None:
        if self.num_particles < 2 or self.num_particles % 2:
            raise ValueError(
                f"`num_particles` is {self.num_particles}; give an even number, at least 2."
            )
        require_depth(self.depth)

    def initial(self, num_columns: int, *, key: PRNGKeyArray) -> NetworkPrior:
        return network_prior(num_columns, self.width, self.depth, self.initial_std, key=key)

    def objective(self, tasks: Tasks, data: MetaData) -> NetworkObjective:
        num_columns = tasks.space.num_inputs
        shortest = int(tasks.lengths.min())
        # Only its size matters here, so nothing is computed.
        blank = eqx.filter_eval_shape(self.initial, num_columns, key=jax.random.key(0))
        return NetworkObjective(
            data,
            hyper_prior_of(self, num_columns),
            jnp.asarray(self.kappa),
            jnp.asarray(self.measurement_variance),
            measurement_sizes(self.num_measurements, self.measurements_from_task, shortest),
            min(self.batch_size, tasks.num_tasks),
            self.num_samples,
            blank.log_std.shape[0],
            self.newton_steps,
            estimator_of(self.score_estimator),
        )

    def surrogate(self, model: NetworkPrior, standardiser: Standardiser) -> NetworkSurrogate:
        # A quadrature rule rather than a random draw, hence the fixed key.
        anchors = antithetic_normals(self.num_particles, model.num_weights, key=jax.random.key(0))
        spread = Spread(jnp.asarray(self.noise_log_spread), jnp.asarray(self.scale_log_spread))
        return NetworkSurrogate(model, standardiser, anchors, spread, self.posterior_steps)
