"""The ask-evaluate-tell loop on a function that JAX can trace: nothing else.

Being one compiled loop, it can be `vmap`ped over tasks, seeds and surrogates.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.data import Choices, Run, empty_run
from metaprior.lab.policies._policy import AbstractPolicy, SurrogatePolicy


class Trace(NamedTuple):
    """A whole run: queries, noise-free values there, and where the model expected the best."""

    run: Run
    values: Float[Array, " steps"]
    values_at_predicted_best: Float[Array, " steps"]


def optimise(
    problem: Callable[[Float[Array, " d"]], Float[Array, ""]],
    policy: AbstractPolicy,
    num_queries: int,
    *,
    key: PRNGKeyArray,
    noise_std: float = 0.0,
    infer: bool = False,
) -> Trace:
    """`num_queries` steps of `policy` on `problem`, from an empty run.

    A problem may have `choices`, as tasks do: then only these are asked, each at most once, and
    there must be as many as queries.

    With `infer`, the point with the largest posterior mean is sought before every query too (for
    the inference regret); a policy without a surrogate has none.
    """
    choices: Choices | None = getattr(problem, "choices", None)

    def ask(run: Run, key: PRNGKeyArray, key_best: PRNGKeyArray):
        """The next query, and the value where the model expects the best."""
        if not (infer and isinstance(policy, SurrogatePolicy)):
            unknown = jnp.asarray(jnp.nan)
            if choices is None:
                return policy.suggest(run, key=key), unknown
            return policy.choose(run, choices, key=key), unknown
        if choices is None:
            x, best = policy.suggest_and_predict(run, key_suggest=key, key_predict=key_best)
        else:
            x = policy.choose(run, choices, key=key)
            best = policy.predicted_best(run, key=key_best, choices=choices)
        return x, problem(best)

    def step(run: Run, t):
        key_query, key_noise, key_best = jax.random.split(jax.random.fold_in(key, t), 3)
        x, predicted = ask(run, key_query, key_best)
        value = problem(x)
        observed = value + noise_std * jax.random.normal(key_noise)
        return run.append(x, observed), (value, predicted)

    run = empty_run(num_queries, policy.space.num_columns)
    run, (values, predicted) = jax.lax.scan(step, run, jnp.arange(num_queries))
    return Trace(run, values, predicted)
