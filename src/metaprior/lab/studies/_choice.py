"""Choosing a configuration from the records of a search, by one of two criteria.

`study`: by what the studies report. A candidate is a configuration after a number of training
steps; a sample is what it got on one validation task with the prior of one seed. Candidates are
ranked by the mean of each measure, and the ranks averaged. Those that cannot be told from the one
with the best average rank are tied with it: the 95 % interval of the difference in average rank,
sample by sample, holds zero. Among them the most robust is taken: the one whose bad tail is best,
each measure's worst tenth of samples, ranked and averaged in the same way. Regrets below a
millionth of the worst one on a sample count as equal, so that nothing is decided by last digits.

`paper`: the lowest average rank by the mean of two measures, the simple regret after the last step
and the inference regret over the last steps (appendix B).
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata
from scipy.stats import t as student

from metaprior.lab.studies._folder import DataFrame

CANDIDATE = ["configuration", "num_steps"]
SAMPLE = ["seed", "task"]
# Measures by the column of the records, and whether larger is better.
REGRETS = ("early_regret", "simple_regret", "inference_regret")
LARGER_IS_BETTER = {**dict.fromkeys(REGRETS, False), "log_likelihood": True}
LARGER_IS_BETTER["calibration_error"] = False
MEASURES = tuple(LARGER_IS_BETTER)
PAPER_MEASURES = ("simple_regret", "inference_regret")
# Share of the worst regret on a sample below which regrets are equal.
NEGLIGIBLE = 1e-6
TAIL = 0.9
LEVEL = 0.975

Losses = dict[str, Float[np.ndarray, "candidates samples"]]


def by_study(losses: Losses) -> tuple[int, dict[str, float]]:
    """The candidate that the criterion `study` chooses, and the scores it has of it."""
    losses = {
        name: np.maximum(loss, NEGLIGIBLE * loss.max(axis=0)) if name in REGRETS else loss
        for name, loss in losses.items()
    }
    average = _average_rank({name: loss.mean(axis=1) for name, loss in losses.items()})
    first = int(np.argmin(average))
    tied = np.flatnonzero(_not_told_apart(losses, first))
    tails = {name: np.quantile(loss[tied], TAIL, axis=1) for name, loss in losses.items()}
    tail_rank = _average_rank(tails)
    # Of equal tails, the better average rank.
    best = tied[np.lexsort((average[tied], tail_rank))[0]]
    return int(best), {"average_rank": float(average[best]), "tied": float(len(tied))}


def by_paper(losses: Losses) -> tuple[int, dict[str, float]]:
    """The candidate that the paper's criterion chooses; of equals the one with less regret."""
    means = {name: losses[name].mean(axis=1) for name in PAPER_MEASURES}
    average = _average_rank(means)
    best = int(np.lexsort((means["simple_regret"], average))[0])
    return best, {"average_rank": float(average[best])}


CRITERIA: dict[str, Callable[[Losses], tuple[int, dict[str, float]]]] = {
    "study": by_study,
    "paper": by_paper,
}


def choose(records: DataFrame, criterion: str) -> dict[str, Any]:
    """The best candidate among the records of one entrant on one environment.

    Its settings, the means of its measures, and how many candidates there were. A configuration
    that diverged on one sample is dropped.
    """
    candidates = records.groupby(CANDIDATE)
    sound = ~candidates["diverged"].any()
    counts = {
        "configurations": int(records["configuration"].nunique()),
        "candidates": len(sound),
        "diverged": int((~sound).sum()),
    }
    if not sound.any():
        return {"settings": None, "scores": {}, "searched": counts}
    left = sound[sound].index
    best, scores = CRITERIA[criterion](losses_of(records, left))
    configuration, num_steps = left[best]
    mine = records[
        (records["configuration"] == configuration) & (records["num_steps"] == num_steps)
    ]
    means = {name: float(mine[name].mean()) for name in MEASURES}
    found = {"configuration": int(configuration), "num_steps": int(num_steps)}
    return {
        "settings": json.loads(mine["drawn"].iloc[0]),
        "scores": {**found, **scores, **means},
        "searched": counts,
    }


def losses_of(records: DataFrame, candidates: Any) -> Losses:
    """Each measure, lower is better, by candidate and sample.

    - `candidates`: an index of those that count.
    """
    wide = {
        name: records.pivot(index=CANDIDATE, columns=SAMPLE, values=name).loc[candidates]
        for name in MEASURES
    }
    signs = {name: -1.0 if larger else 1.0 for name, larger in LARGER_IS_BETTER.items()}
    return {name: signs[name] * values.to_numpy(float) for name, values in wide.items()}


def _average_rank(
    scores: dict[str, Float[np.ndarray, " candidates"]],
) -> Float[np.ndarray, " candidates"]:
    """Rank among the candidates by each score, averaged over the scores; equals share theirs."""
    return np.mean([rankdata(score) for score in scores.values()], axis=0)


def _not_told_apart(losses: Losses, first: int) -> np.ndarray:
    """Which candidates' average ranks, sample by sample, are not clearly worse than those of the
    candidate `first`."""
    ranks = np.mean([rankdata(loss, axis=0) for loss in losses.values()], axis=0)
    worse = ranks - ranks[first]
    count = worse.shape[1]
    if count < 2:
        return worse[:, 0] <= 0.0
    error = worse.std(axis=1, ddof=1) / np.sqrt(count)
    return worse.mean(axis=1) <= student.ppf(LEVEL, count - 1) * error
