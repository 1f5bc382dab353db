"""How well a surrogate predicts runs that it has not seen, by the exam of `learn`."""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from metaprior.data import Tasks
from metaprior.gp import float64
from metaprior.learning._exam import Fold, exam_of, examine
from metaprior.learning._predict import CompiledPredictors
from metaprior.learning._score import log_likelihood_by_run
from metaprior.methods import AbstractSurrogate


@float64
def held_out_log_likelihood(
    surrogate: AbstractSurrogate, tasks: Tasks, *, spread: float
) -> Float[np.ndarray, " n"]:
    """The log-likelihood of each run, as `findings.tasks` has it for held-out ones.

    A guarded surrogate is examined without its guard, as for the findings.

    - `tasks`: runs that the surrogate has not seen.
    - `spread`: the unit of the values, a standard deviation of past ones.
    """
    n = tasks.num_tasks
    exam = exam_of(tasks, [Fold(0, n, np.arange(n))])
    alone = jax.tree.map(
        lambda leaf: leaf[None] if eqx.is_array(leaf) else leaf, surrogate.unguarded
    )
    answers = examine(CompiledPredictors(alone), exam, np.array([0]), np.array([True]))
    return log_likelihood_by_run(answers, spread)[0]
