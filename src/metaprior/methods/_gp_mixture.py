"""Surrogates and posteriors of methods that hold a distribution over Gaussian-process priors."""

import equinox as eqx
import jax

from metaprior.data import Run, Standardiser
from metaprior.gp import Spread
from metaprior.meta._hyper_posterior import HyperPosterior, antithetic_normals
from metaprior.methods._gp_surrogate import GPPosterior, GPSurrogate
from metaprior.methods._method import AbstractSurrogate
from metaprior.methods._mixture import AbstractMixturePosterior


class GPMixturePosterior(AbstractMixturePosterior):
    """The posteriors of several priors, stacked; each is as likely as any other."""

    posteriors: GPPosterior

    def components(self, x):
        return eqx.filter_vmap(lambda posterior: posterior.moments(x))(self.posteriors)

    def sample(self, x, num, *, key):
        def one(key):
            key_prior, key_function = jax.random.split(key)
            return self._any_of_them(key_prior).sample(x, 1, key=key_function)[0]

        return jax.vmap(one)(jax.random.split(key, num))

    def path(self, anchors, *, key):
        key_prior, key_function = jax.random.split(key)
        return self._any_of_them(key_prior).path(anchors, key=key_function)

    def _any_of_them(self, key) -> GPPosterior:
        arrays, static = eqx.partition(self.posteriors, eqx.is_array)
        count = jax.tree.leaves(arrays)[0].shape[0]
        index = jax.random.randint(key, (), 0, count)
        return eqx.combine(jax.tree.map(lambda leaf: leaf[index], arrays), static)


class GPMixtureSurrogate(AbstractSurrogate):
    """A hyper-posterior, used through a fixed set of `num_priors` draws from it.

    The draws are the same in every call, so that predictions for growing runs are comparable.
    """

    hyper_posterior: HyperPosterior
    standardiser: Standardiser
    spread: Spread
    num_priors: int = eqx.field(static=True)

    def condition(self, run: Run) -> GPMixturePosterior:
        size = self.hyper_posterior.log_std.shape[0]
        noise = antithetic_normals(self.num_priors, size, key=jax.random.key(0))

        def one(prior):
            return GPSurrogate(prior, self.standardiser, self.spread).condition(run)

        return GPMixturePosterior(eqx.filter_vmap(one)(self.hyper_posterior.at(noise)))
