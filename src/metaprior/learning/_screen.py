r"""Which features of tasks have to do with the past runs at all: a permutation test for each.

With few tasks a network finds a pattern in any feature. So a feature takes part in the race only if
the past functions depend on it. Each run is described by the posterior mean of a Gaussian process
at common points, split into its level, as a rank, and its shape: what is left, scaled to length 1.
With $G$ one row per task, centred over the tasks, and $Q$ an orthonormal basis of the feature's
codes and their squares, the test statistic is

$$ R^2 = \|Q^\top G\|^2 / \|G\|^2, $$

compared with that of tasks that have been permuted. A feature stays if one of the two tests, of
level and of shape, has a p-value of at most 0.05: of a feature that means nothing, one in ten
stays.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from metaprior.belief import AveragedBelief
from metaprior.data import Feature, TaskFeatures, Tasks

NUM_POINTS = 64
# Of a run; more would take long and add little.
MOST_POINTS = 48
NUM_PERMUTATIONS = 999
# Of each of the two tests, of level and of shape.
SIGNIFICANCE = 0.05
UNRELATED = "past runs show no relation to it"
# So many features may race, one after another.
MOST_FEATURES = 5
OTHERS = f"past runs show a stronger relation to {MOST_FEATURES} others"


def screened(tasks: Tasks, *, seed: int) -> TaskFeatures:
    """The features of `tasks`, of which only those are used that the runs depend on, a few at most:
    those with the smallest p-values, in this order."""
    features = tasks.features
    if not features.used:
        return features
    descriptions = _descriptions(tasks, np.random.default_rng(seed))
    # Every feature is compared with the same permutations, whatever the others are.
    rng = np.random.default_rng([seed, NUM_PERMUTATIONS])
    orders = [rng.permutation(tasks.num_tasks) for _ in range(NUM_PERMUTATIONS)]
    found = {
        feature.name: min(p_value(_codes(feature, tasks), each, orders) for each in descriptions)
        for feature in features.used
    }
    strongest = sorted(features.used, key=lambda feature: found[feature.name])
    related = [feature.name for feature in strongest if found[feature.name] <= SIGNIFICANCE]
    reasons = {feature.name: UNRELATED for feature in strongest}
    reasons |= {name: OTHERS for name in related[MOST_FEATURES:]}
    for name in related[:MOST_FEATURES]:
        del reasons[name]
    return replace(features, used=tuple(strongest)).without(reasons)


def p_value(
    codes: Float[np.ndarray, "n c"],
    descriptions: Float[np.ndarray, "n k"],
    orders: list[np.ndarray],
) -> float:
    """How often permuted tasks depend on the codes as much as the tasks do; 1 if they are equal."""
    centred = descriptions - descriptions.mean(axis=0)
    basis = _basis(codes)
    if not centred.any() or basis.shape[1] == 0:
        return 1.0

    def explained(order) -> float:
        return float(np.sum((basis.T @ centred[order]) ** 2))

    # Permutations that change nothing must count as equal, whatever the order of the sums.
    found = explained(np.arange(len(codes))) * (1.0 - 1e-9)
    return (1 + sum(explained(order) >= found for order in orders)) / (1 + len(orders))


def _descriptions(
    tasks: Tasks, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "n 1"], Float[np.ndarray, "n k"]]:
    """Level and shape of each run."""
    seen = tasks.x[tasks.mask]
    places = seen[rng.choice(len(seen), min(NUM_POINTS, len(seen)), replace=False)]
    values = tasks.y[tasks.mask]
    belief = AveragedBelief(float(values.mean()), float(values.std()) or 1.0)
    means = np.stack(
        [
            belief.condition(x[rows], y[rows]).moments(places).mean
            for x, y, rows in zip(tasks.x, tasks.y, map(_some_rows, tasks.lengths), strict=True)
        ]
    )
    level = means.mean(axis=1, keepdims=True)
    shape = means - level
    length = np.linalg.norm(shape, axis=1, keepdims=True)
    # Ranks: one run with other units must not decide.
    ranks = np.argsort(np.argsort(level[:, 0], kind="stable"), kind="stable")
    return ranks[:, None].astype(float), shape / np.where(length > 0.0, length, 1.0)


def _some_rows(length: np.integer) -> Int[np.ndarray, " k"]:
    """All rows of a run, or some of them all along a long one."""
    return np.linspace(0, length - 1, min(int(length), MOST_POINTS)).round().astype(int)


def _codes(feature: Feature, tasks: Tasks) -> Float[np.ndarray, "n c"]:
    return np.stack([feature.code(values.get(feature.name), "") for values in tasks.feature_values])


def _basis(codes: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "n k"]:
    """Orthonormal columns that span the codes and their squares, centred."""
    columns = np.concatenate([codes, codes**2], axis=1)
    centred = columns - columns.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    return left[:, sizes > 1e-9 * max(sizes[0], 1e-300)]
