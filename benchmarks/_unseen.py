"""New tasks of the paper's families, asked as a user would: past runs, searches, predictions."""

from functools import cache

import numpy as np

from metaprior.belief import Prior
from metaprior.data import Tasks
from metaprior.metrics import calibration_error


@cache
def families() -> dict:
    """The paper's families by name."""
    from metaprior.lab.environments import known_families

    return known_families()


def past_runs(family, key) -> Tasks:
    """Runs of fixed GP-UCB on training tasks, n and T of the paper."""
    import jax

    from metaprior.gp import float64
    from metaprior.lab.studies import fixed_gp_policy, race, recorded

    @float64
    def collected():
        key_tasks, key_race = jax.random.split(key)
        tasks = family.training_tasks(family.num_tasks, key=key_tasks)
        found = race(fixed_gp_policy(family), tasks, family.run_length, key=key_race)
        return recorded(family, found.x, found.y)

    return collected()


def search(prior: Prior, task, optimum: float, num_queries: int, seed: int) -> dict[str, list]:
    """Regret after each query, and trust before the first and after each.

    The default acquisition; a table is asked at its rows.
    """
    import metaprior as mp

    optimizer = mp.Optimizer(prior, candidates=_rows(task), seed=seed)
    best, regret, trust = -np.inf, [], [optimizer.trust]
    for _ in range(num_queries):
        point = optimizer.ask()
        value = float(task.evaluate([point])[0])
        optimizer.tell(point, value)
        best = max(best, value)
        regret.append(optimum - best)
        trust.append(optimizer.trust)
    return {"regret": regret, "trust": trust}


def predict(
    prior: Prior, task, contexts: tuple[int, ...], num: int, seed: int
) -> tuple[list[list[float]], list[float]]:
    """From so many uniform points, predict `num` others: the probability that each prior gave to
    less than the value, a row for each number of points, and mean log density."""
    rng = np.random.default_rng(seed)
    rows, most = _rows(task), max(contexts)
    if rows is None:
        uniform = rng.uniform(size=(most + num, task.space.num_inputs))
        points = task.space.decode(uniform)
    else:
        points = [rows[i] for i in rng.permutation(len(rows))[: most + num]]
    values = task.evaluate(points)
    cdf, density = [], []
    for context in contexts:
        posterior = prior.condition(points[:context], values[:context])
        cdf.append(posterior.cdf(points[most:], values[most:]).tolist())
        density.append(float(posterior.log_density(points[most:], values[most:]).mean()))
    return cdf, density


def pooled_calibration(cdf: list[list[list[float]]]) -> float:
    """Calibration error of all tasks together, mean over contexts."""
    by_context = zip(*cdf, strict=True)
    return float(np.mean([calibration_error(np.concatenate(each)) for each in by_context]))


def _rows(task):
    """What may be asked, if that is finite."""
    if task.choices is None:
        return None
    points = np.asarray(task.choices.points)[np.asarray(task.choices.valid)]
    return task.space.decode(points)
