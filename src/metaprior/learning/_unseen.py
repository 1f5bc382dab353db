"""How well a prior predicts runs that it has not seen, by the exam of `learn`."""

import numpy as np
from jaxtyping import Float

from metaprior.belief import AbstractBelief, Prior
from metaprior.data import Tasks
from metaprior.learning._exam import Fold, exam_of, examine
from metaprior.learning._predict import ConditionedPredictors
from metaprior.learning._score import log_likelihood_by_run


def held_out_log_likelihood(
    prior: Prior, tasks: Tasks, *, spread: float
) -> Float[np.ndarray, " n"]:
    """The log-likelihood of each run, as `findings.tasks` has it for held-out ones.

    - `tasks`: runs over the prior's space that it has not seen.
    - `spread`: the unit of the values, a standard deviation of past ones.
    """
    n = tasks.num_tasks
    exam = exam_of(tasks, [Fold(i, 1, np.array([i])) for i in range(n)])
    # A belief sees the columns of points, and adds those of conditions and features itself.
    plain = exam._replace(x=tasks.space.points_of(exam.x))
    asked = ConditionedPredictors([_belief_about(prior, tasks, i) for i in range(n)])
    answers = examine(asked, plain, np.arange(n), np.ones(n, bool))
    return log_likelihood_by_run(answers, spread)[:, 0]


def _belief_about(prior: Prior, tasks: Tasks, task: int) -> AbstractBelief:
    """What users would ask, knowing of a task what the prior uses of its features."""
    if not tasks.feature_values:
        return prior.belief
    known = tasks.feature_values[task]
    about = {name: known.get(name) for name in prior.features.names}
    return prior.for_task(about).belief
