r"""Bayesian linear regression, in whichever of data space and feature space is smaller.

symbol      meaning                                              shape
Phi, y      features and values of the observations              (m, D), (m,)
w           weights, w ~ N(0, a I), with a = 1 / alpha           (D,)
s           noise variance, s = 1 / beta: y = Phi w + noise      ()
C           a Phi Phi^T + s I: covariance of y (data space)      (m, m)
B           I + (a / s) Phi^T Phi: posterior precision of w, in  (D, D)
            units of the prior's (feature space)

Both spaces give the same numbers, by the Woodbury identity and $|C| = s^m |B|$. As everywhere, the
jitter of the library is part of the noise. Rows that are not observations have zero features and
zero values, which carry no information about the weights.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from metaprior.gp._gaussian import LOG_2_PI, Gaussian, log_density
from metaprior.gp._linalg import JITTER, cholesky, invert_factor, log_determinant


class LinearPrior(eqx.Module):
    r"""$w \sim N(0, a I)$ and $y = \phi^\top w + \varepsilon$, $\varepsilon \sim N(0, s)$."""

    weight_variance: Float[Array, ""]
    noise_variance: Float[Array, ""]

    def log_evidence(
        self, features: Float[Array, "m D"], y: Float[Array, " m"], mask: Bool[Array, " m"]
    ) -> Float[Array, ""]:
        r"""$\ln p(y \mid \Phi)$ of the observations selected by `mask`."""
        num, dimension = features.shape
        in_space = evidence_in_data_space if num <= dimension else evidence_in_feature_space
        return in_space(self, features, y, mask)

    def condition(
        self, features: Float[Array, "m D"], y: Float[Array, " m"], mask: Bool[Array, " m"]
    ) -> "AbstractWeights":
        """Belief about the weights given the observations selected by `mask`."""
        num, dimension = features.shape
        in_space = weights_in_data_space if num <= dimension else weights_in_feature_space
        return in_space(self, features, y, mask)


def evidence_in_data_space(prior: LinearPrior, features, y, mask) -> Float[Array, ""]:
    r"""$\ln N(y; 0, C)$."""
    features, y = _observed(features, y, mask)
    noise = prior.noise_variance * jnp.eye(y.shape[0])
    covariance = prior.weight_variance * features @ features.T + noise
    return log_density(y, Gaussian(jnp.zeros_like(y), covariance), mask)


def evidence_in_feature_space(prior: LinearPrior, features, y, mask) -> Float[Array, ""]:
    r"""$-\tfrac12 \big( \|y - \Phi \mu\|^2 / s + \|\mu\|^2 / a + \ln|B| + m \ln(2 \pi s) \big)$,
    with $\mu = (a / s) B^{-1} \Phi^\top y$ the posterior mean of the weights.

    The two squares are $y^\top C^{-1} y$ without its cancellation.
    """
    features, y = _observed(features, y, mask)
    noise_variance = prior.noise_variance + JITTER
    precision = _precision(prior, features)
    # No gradient flows through the factorisation: the squares are stationary in the mean, and
    # d ln|B| = tr(B^-1 dB).
    factor = cholesky(jax.lax.stop_gradient(precision), 0.0)
    inverse_factor = invert_factor(factor)
    inverse = inverse_factor.T @ inverse_factor
    mean = inverse @ (features.T @ y) * (prior.weight_variance / noise_variance)
    mean = jax.lax.stop_gradient(mean)
    squares = (
        jnp.sum((y - features @ mean) ** 2) / noise_variance
        + jnp.sum(mean**2) / prior.weight_variance
    )
    change = jnp.sum(inverse * (precision - jax.lax.stop_gradient(precision)))
    count = jnp.sum(mask)
    determinant = log_determinant(factor) + change + count * jnp.log(noise_variance)
    return -0.5 * (squares + determinant + count * LOG_2_PI)


class AbstractWeights(eqx.Module):
    """The Gaussian belief about the weights."""

    mean: eqx.AbstractVar[Float[Array, " D"]]

    @abc.abstractmethod
    def variance(self, features: Float[Array, " D"]) -> Float[Array, ""]:
        r"""Variance of $\phi^\top w$."""

    @abc.abstractmethod
    def covariance(self, features: Float[Array, "n D"]) -> Float[Array, "n n"]:
        r"""Joint covariance of $\phi_i^\top w$ over the rows $\phi_i$."""

    @abc.abstractmethod
    def draw(self, *, key: PRNGKeyArray) -> Float[Array, " D"]:
        """Random weights."""


class DataSpaceWeights(AbstractWeights):
    r"""The belief by the factor $L$ of $C$: covariance $a (I - V^\top V)$,
    $V = \sqrt a L^{-1} \Phi$."""

    mean: Float[Array, " D"]
    shadow: Float[Array, "m D"]
    inverse_factor: Float[Array, "m m"]
    prior: LinearPrior

    def variance(self, features):
        seen = self.shadow @ features
        return self.prior.weight_variance * (jnp.sum(features**2) - jnp.sum(seen**2))

    def covariance(self, features):
        seen = features @ self.shadow.T
        return self.prior.weight_variance * (features @ features.T - seen @ seen.T)

    def draw(self, *, key):
        r"""Weights $w_0$ of the prior, corrected by what they and a draw of the noise get wrong:
        $w_0 + a \Phi^\top C^{-1} (y - \Phi w_0 - \varepsilon)$."""
        num, dimension = self.shadow.shape
        normal = jax.random.normal(key, (dimension + num,))
        weight_std = jnp.sqrt(self.prior.weight_variance)
        weights = weight_std * normal[:dimension]
        noise = jnp.sqrt(self.prior.noise_variance + JITTER) * normal[dimension:]
        seen = self.shadow @ weights + weight_std * self.inverse_factor @ noise
        return self.mean + weights - self.shadow.T @ seen


class FeatureSpaceWeights(AbstractWeights):
    r"""The belief by the factor $L$ of $B$: covariance $a L^{-\top} L^{-1}$."""

    mean: Float[Array, " D"]
    inverse_factor: Float[Array, "D D"]
    prior: LinearPrior

    def variance(self, features):
        return self.prior.weight_variance * jnp.sum((self.inverse_factor @ features) ** 2)

    def covariance(self, features):
        left = features @ self.inverse_factor.T
        return self.prior.weight_variance * left @ left.T

    def draw(self, *, key):
        normal = jax.random.normal(key, self.mean.shape)
        return self.mean + jnp.sqrt(self.prior.weight_variance) * normal @ self.inverse_factor


def weights_in_data_space(prior: LinearPrior, features, y, mask) -> DataSpaceWeights:
    r"""Mean $a \Phi^\top C^{-1} y$ and covariance $a I - a^2 \Phi^\top C^{-1} \Phi$."""
    features, y = _observed(features, y, mask)
    noise = prior.noise_variance * jnp.eye(y.shape[0])
    inverse_factor = invert_factor(cholesky(prior.weight_variance * features @ features.T + noise))
    weight_std = jnp.sqrt(prior.weight_variance)
    shadow = weight_std * inverse_factor @ features
    mean = weight_std * shadow.T @ (inverse_factor @ y)
    return DataSpaceWeights(mean, shadow, inverse_factor, prior)


def weights_in_feature_space(prior: LinearPrior, features, y, mask) -> FeatureSpaceWeights:
    r"""Mean $(a / s) B^{-1} \Phi^\top y$ and covariance $a B^{-1}$."""
    features, y = _observed(features, y, mask)
    inverse_factor = invert_factor(cholesky(_precision(prior, features), 0.0))
    ratio = prior.weight_variance / (prior.noise_variance + JITTER)
    mean = ratio * (inverse_factor @ (features.T @ y)) @ inverse_factor
    return FeatureSpaceWeights(mean, inverse_factor, prior)


def _precision(prior: LinearPrior, features: Float[Array, "m D"]) -> Float[Array, "D D"]:
    r"""$B$. Its eigenvalues are at least 1, so that it is factored without jitter."""
    ratio = prior.weight_variance / (prior.noise_variance + JITTER)
    return jnp.eye(features.shape[1]) + ratio * features.T @ features


def _observed(
    features: Float[Array, "m D"], y: Float[Array, " m"], mask: Bool[Array, " m"]
) -> tuple[Float[Array, "m D"], Float[Array, " m"]]:
    """Features and values with zeros in the rows that are not observations."""
    return jnp.where(mask[:, None], features, 0.0), jnp.where(mask, y, 0.0)
