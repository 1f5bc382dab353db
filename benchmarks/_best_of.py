"""Rows of rivals as one: in every column the best of them, chosen in hindsight."""

from collections.abc import Callable

import numpy as np

from metaprior.metrics import mean_and_interval

Samples = dict[str, np.ndarray]

# Larger is better in this column, smaller in all others.
LARGER_IS_BETTER = ("log-likelihood",)


def best_of(results: dict[str, Samples], groups: dict[str, str]) -> dict[str, Samples]:
    """The rows of `results`, those whose names start with a key of `groups` as one row called by
    its value, with the number of rows it stands for in place of `{}`."""
    alone = {
        name: row for name, row in results.items() if not name.startswith(tuple(groups.keys()))
    }
    together = {}
    for start, title in groups.items():
        rows = [row for name, row in results.items() if name.startswith(start)]
        if rows:
            together[title.format(len(rows))] = _columnwise(rows)
    return {**alone, **together}


def _columnwise(rows: list[Samples]) -> Samples:
    """For each column the samples of the row whose mean is best."""
    found: Samples = {}
    for metric in rows[0]:
        columns = [np.atleast_2d(row[metric].T) for row in rows if metric in row]
        pick: Callable = np.argmax if metric in LARGER_IS_BETTER else np.argmin
        best = [pick([mean_and_interval(c[i])[0] for c in columns]) for i in range(len(columns[0]))]
        chosen = np.stack([columns[which][i] for i, which in enumerate(best)], axis=-1)
        found[metric] = chosen if rows[0][metric].ndim == 2 else chosen[:, 0]
    return found
