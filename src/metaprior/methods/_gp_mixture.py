"""Surrogates of methods that hold a distribution over Gaussian-process priors."""

import equinox as eqx
import jax

from metaprior.data import Run, Standardiser
from metaprior.gp import Spread
from metaprior.meta import HyperPosterior, antithetic_normals
from metaprior.methods._gp_surrogate import GPSurrogate
from metaprior.methods._method import AbstractSurrogate
from metaprior.methods._posterior_mixture import MixturePosterior, equal_mixture


class GPMixtureSurrogate(AbstractSurrogate):
    """A hyper-posterior, used through a fixed set of `num_priors` draws from it.

    The draws are the same in every call, so that predictions for growing runs are comparable.
    """

    hyper_posterior: HyperPosterior
    standardiser: Standardiser
    spread: Spread
    num_priors: int = eqx.field(static=True)

    def condition(self, run: Run) -> MixturePosterior:
        size = self.hyper_posterior.log_std.shape[0]
        noise = antithetic_normals(self.num_priors, size, key=jax.random.key(0))

        def one(prior):
            return GPSurrogate(prior, self.standardiser, self.spread).condition(run)

        return equal_mixture(eqx.filter_vmap(one)(self.hyper_posterior.at(noise)))
