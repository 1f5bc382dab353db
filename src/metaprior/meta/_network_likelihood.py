r"""The generalised marginal likelihood of a prior over networks, by importance sampling.

symbol      meaning                                             name here
z           weights in units of the prior p = N(0, I)           whitened
l           loss of a prediction at an observation              loss_function
q           posterior of z under a tangent of the network       conditioned
r           ln q(z) / p(z)                                      log_ratio

$$ Z = \mathbb{E}_{z \sim p} \, e^{-\sum_t l(h_z(x_t), y_t)} $$

Hardly any network drawn from $p$ fits a whole run, so an average over such draws is dominated by
the best of them. Half of the draws come from $q$ instead, which is conditioned on the run. By
Bayes' theorem, with the tangent $c + J z$ and noise variance $s$,

$$ r(z) = \ln N(y; c + J z, s I) - \ln N(y; c, J J^\top + s I), $$

and draws from both halves are weighted by $p / (\tfrac12 p + \tfrac12 q)$, which is at most 2: a
bad tangent costs half of the draws and nothing else.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from metaprior.gp import log_density
from metaprior.meta._network_prior import NetworkPrior
from metaprior.meta._tangent import Observations, descend, tangent

# Of a prediction, an observation and the prior's noise variance.
Loss = Callable[[Float[Array, ""], Float[Array, ""], Float[Array, ""]], Float[Array, ""]]


def gaussian_loss(
    predicted: Float[Array, ""], observed: Float[Array, ""], noise_variance: Float[Array, ""]
) -> Float[Array, ""]:
    r"""$-\ln N(y; h, \sigma^2)$. With this loss $Z$ is the marginal likelihood."""
    squared = (observed - predicted) ** 2 / noise_variance
    return 0.5 * (squared + jnp.log(2 * jnp.pi * noise_variance))


def total_losses(
    values: Float[Array, "s m"],
    y: Float[Array, " m"],
    mask: Bool[Array, " m"],
    noise_variance: Float[Array, ""],
    loss_function: Loss = gaussian_loss,
) -> Float[Array, " s"]:
    r"""$\sum_t l(h(x_t), y_t)$ of each row of function values, over the rows in the mask."""

    def total(row):
        losses = jax.vmap(lambda h, y: loss_function(h, y, noise_variance))(row, y)
        return jnp.sum(jnp.where(mask, losses, 0.0))

    return jax.vmap(total)(values)


def log_mean_exp(exponents: Float[Array, " s"]) -> Float[Array, ""]:
    r"""$\ln \frac1S \sum_s e^{a_s}$, for exponents of any size.

    An estimate of $\ln \mathbb{E} \, e^a$ that is too small on average (Jensen's inequality), the
    less so the more samples there are.
    """
    return jax.nn.logsumexp(exponents) - jnp.log(exponents.shape[0])


def condition_draws(
    prior: NetworkPrior,
    observed: Observations,
    whitened: Float[Array, "s p"],
    noise: Float[Array, "s m"],
    num_steps: int,
) -> tuple[Float[Array, "s p"], Float[Array, " 2*s"]]:
    r"""The draws moved to the posterior under a tangent, and $\ln p / (\tfrac12 p + \tfrac12 q)$ of
    the given draws and of these.

    The tangent is that at the weights after `num_steps` Gauss-Newton steps from the prior's mean.
    """
    std = jnp.sqrt(prior.noise_variance)
    # Where the tangent touches is a free choice, which needs no gradient; the tangent itself has
    # one, for then errors of the draws cancel against its own, and vanish if it is exact.
    fixed = jax.lax.stop_gradient(prior)
    steps = jnp.full(num_steps, fixed.noise_variance)
    mode = descend(fixed, observed, jnp.zeros(prior.num_weights), steps)[-1]
    touching = tangent(prior, observed, mode)
    conditioned = jax.vmap(
        lambda z, e: touching.explain(observed.plus(std * e).y, z, prior.noise_variance)
    )(whitened, noise)
    both = jnp.concatenate([whitened, conditioned])
    values = touching.offset[None, :] + both @ touching.jacobian.T
    losses = total_losses(values, observed.y, observed.mask, prior.noise_variance)
    evidence = log_density(observed.y, touching.marginal(prior.noise_variance), observed.mask)
    log_ratio = -losses - evidence
    return conditioned, jnp.log(2.0) - jnp.logaddexp(0.0, log_ratio)
