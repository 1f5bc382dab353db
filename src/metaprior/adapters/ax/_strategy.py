"""`generation_strategy`: learned priors in Ax, in one call."""

from collections.abc import Mapping

from ax.generation_strategy.generation_strategy import GenerationStrategy

from metaprior.adapters.ax._node import LearnedPriorNode
from metaprior.adapters.ax._priors import OBJECTIVE
from metaprior.belief import Prior
from metaprior.data import Features

NAME = "metaprior"


def generation_strategy(
    priors: Prior | Mapping[str, Prior],
    *,
    features: Features | None = None,
    seed: int = 0,
) -> GenerationStrategy:
    """A strategy for `client.set_generation_strategy`, in which learned priors propose all trials.

    The first trials come from the priors alone, and later ones from Ax's BoTorch generator with
    the priors as models: qLogNEI for one objective, qLogNEHVI for several. The experiment's search
    space is checked against the priors' when the first trial is asked for; it may be a part of
    theirs, and parameter constraints are respected. The strategy is saved with the client, priors
    included; import `metaprior.adapters.ax` before loading it.

    - `priors`: the prior of the objective, or priors by the names of their metrics: one for each
      objective, and for whichever constrained outcomes have one.
    - `features`: features of the task: see `metaprior.Prior.for_task`.
    - `seed`: of what is proposed before the first result; later trials follow Ax's own seed.
    """
    by_metric = {OBJECTIVE: priors} if isinstance(priors, Prior) else dict(priors)
    for name, prior in by_metric.items():
        if not isinstance(prior, Prior):
            told = f"for the metric {name!r}, " if name else ""
            raise TypeError(
                f"A prior is needed {told}received a {type(prior).__name__}; give what "
                "`metaprior.learn` or `metaprior.load` returned."
            )
    if not by_metric:
        raise ValueError("`priors` is empty; give the prior of each objective.")
    return GenerationStrategy(
        name=NAME, nodes=[LearnedPriorNode(NAME, by_metric, features=features, seed=seed)]
    )
