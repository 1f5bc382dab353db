"""One suggestion after 50 observations in 6 dimensions: its time, and how good it is.

Every function prepares in the process that calls it and returns a function that measures once (see
`benchmarks._worker`).
"""

import time
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from jaxtyping import Float

from benchmarks._histories import family_value, histories

INPUT_DIM = 6
NUM_OBSERVED = 50
BETA = 2.0  # factor of the standard deviation in the upper confidence bound, on both sides
CUBE = np.array([np.zeros(INPUT_DIM), np.ones(INPUT_DIM)])


def our_ask() -> Callable[[], float]:
    """Seconds of `Optimizer.ask` as people call it; every repetition is another run."""
    prior = _learned_prior(num_steps=1000)
    seeds = count()

    def measure() -> float:
        optimizer, _, _ = _told_optimizer(prior, next(seeds))
        start = time.process_time()
        optimizer.ask()
        return time.process_time() - start

    measure()
    return measure


def reference_ask() -> Callable[[], float]:
    """Seconds of BoTorch's fit and maximisation, on the same runs."""
    from benchmarks._botorch_reference import ask

    seeds = count()

    def measure() -> float:
        seed = next(seeds)
        x, y = _run(seed)
        start = time.process_time()
        ask(x, y, CUBE, beta=BETA**2, seed=seed)
        return time.process_time() - start

    measure()
    return measure


def shortfall_on_our_posterior(*, num_starts: int) -> Callable[[], float]:
    """How much better SciPy does than `ask`: L-BFGS-B from many starts on the same bound.

    In units of the standard deviation of the run's values; negative where `ask` is better.
    """
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    from scipy.optimize import minimize

    from metaprior.bo import UpperConfidenceBound
    from metaprior.data import run_of
    from metaprior.lab.policies import CompiledConfidenceBound

    jax.config.update("jax_enable_x64", True)
    prior = _learned_prior(num_steps=1000)
    acquisition = CompiledConfidenceBound(BETA)
    seeds = count()

    @eqx.filter_jit
    def loss_and_gradient(posterior, run, x):
        score = acquisition.score(posterior, run, jnp.empty((0, INPUT_DIM)), key=jax.random.key(0))
        return jax.value_and_grad(lambda point: -score(point))(x)

    def measure() -> float:
        seed = next(seeds)
        optimizer, x, y = _told_optimizer(prior, seed, UpperConfidenceBound(BETA))
        asked = prior.space.encode([optimizer.ask()])[0]
        run = run_of(x, y, spare=1)
        posterior = eqx.filter_jit(prior.surrogate.condition)(run)

        def loss(point):
            value, gradient = loss_and_gradient(posterior, run, jnp.asarray(point))
            return float(value), np.asarray(gradient)

        starts = np.random.default_rng(seed).uniform(size=(num_starts, INPUT_DIM))
        # Uniform starts rarely land in the bowl around the best observations.
        starts = np.vstack([starts, x[np.argsort(y)[-10:]]])
        best = min(
            minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * INPUT_DIM).fun
            for start in starts
        )
        return float((loss(asked)[0] - best) / np.std(y))

    return measure


def advantage_on_their_posterior() -> Callable[[], float]:
    """What our maximiser gains over BoTorch's on BoTorch's own fitted model and acquisition.

    Its hyper-parameters are moved into our Gaussian process, the bound is maximised with our
    search, and BoTorch's acquisition judges both points. In units of the values' deviation.
    """
    import equinox as eqx
    import jax

    from benchmarks._botorch_reference import ask
    from metaprior.data import run_of
    from metaprior.lab.policies import SurrogatePolicy

    jax.config.update("jax_enable_x64", True)
    acquisition = _noise_free_bound()
    seeds = count()

    @eqx.filter_jit
    def suggest(policy, run, key):
        return policy.suggest(run, key=key)

    def measure() -> float:
        seed = next(seeds)
        x, y = _run(seed)
        theirs = ask(x, y, CUBE, beta=BETA**2, seed=seed)
        policy = SurrogatePolicy(
            surrogate=_transplanted(theirs.model), acquisition=acquisition, space=_space()
        )
        point = np.asarray(suggest(policy, run_of(x, y, spare=1), jax.random.key(seed)))
        ours, reference = theirs.evaluate(np.stack([point, theirs.x]))
        return float((ours - reference) / np.std(y))

    return measure


def _noise_free_bound():
    """Our upper confidence bound with BoTorch's sigma: that of the function, without noise."""
    import jax.numpy as jnp

    from metaprior.lab.policies import AbstractCompiledAcquisition

    class NoiseFreeUpperConfidenceBound(AbstractCompiledAcquisition):
        def score(self, posterior, run, anchors, *, key):
            def bound(x):
                moments = posterior.moments(x)
                return moments.mean + BETA * jnp.sqrt(moments.function_variance)

            return bound

    return NoiseFreeUpperConfidenceBound()


def _transplanted(model: Any):
    """A fitted `SingleTaskGP` on the unit cube as our surrogate, which refines nothing."""
    import jax.numpy as jnp

    from metaprior.data import Standardiser
    from metaprior.gp import ConstantMean, GaussianProcess, Spread, SquaredExponential
    from metaprior.methods import GPSurrogate

    def number(tensor: Any, shape: tuple[int, ...] = ()) -> Any:
        return jnp.asarray(tensor.detach().numpy().reshape(shape))

    kernel = SquaredExponential(
        jnp.log(number(model.covar_module.lengthscale, (INPUT_DIM,))), jnp.asarray(0.0)
    )
    process = GaussianProcess(
        ConstantMean(number(model.mean_module.constant)),
        kernel,
        jnp.log(number(model.likelihood.noise)),
    )
    standardiser = Standardiser(
        jnp.zeros(INPUT_DIM),
        jnp.ones(INPUT_DIM),
        number(model.outcome_transform.means),
        number(model.outcome_transform.stdvs),
    )
    return GPSurrogate(process, standardiser, Spread(jnp.asarray(0.0), jnp.asarray(0.0)))


def _run(seed: int) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, " m"]]:
    """A run on a task that the prior has not seen: like a search, uniform first, then near its
    optimum."""
    rng = np.random.default_rng(1000 + seed)
    centre = rng.uniform(0.3, 0.7, INPUT_DIM)
    x = rng.uniform(size=(NUM_OBSERVED, INPUT_DIM))
    late = NUM_OBSERVED // 2
    x[late:] = np.clip(centre + 0.1 * rng.normal(size=x[late:].shape), 0.0, 1.0)
    return x, family_value(x, centre)


def _space():
    import metaprior as mp

    return mp.Space(**{f"x{j}": mp.Real(0.0, 1.0) for j in range(INPUT_DIM)})


def _learned_prior(num_steps: int):
    import metaprior as mp

    x, y = histories(30, 100, INPUT_DIM, seed=0)
    tasks = mp.Tasks.from_runs(list(zip(x, y, strict=True)), space=_space())
    return mp.learn(tasks, method=mp.methods.FPacohMap(num_steps=num_steps), seed=0)


def _told_optimizer(prior, seed: int, acquisition=None):
    """An optimiser that has been told a whole run, and that run."""
    import metaprior as mp

    optimizer = mp.Optimizer(prior, acquisition=acquisition, seed=seed)
    x, y = _run(seed)
    for point, value in zip(prior.space.decode(x), y, strict=True):
        optimizer.tell(point, float(value))
    return optimizer, x, y
