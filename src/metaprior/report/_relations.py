"""Which past runs look alike: rank correlations of what each run alone says of shared points."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief import PastMeans, Prior, chosen_runs, past_means
from metaprior.data import direction_sign
from metaprior.findings import Example, Findings
from metaprior.report._html import Html, element, joined, name
from metaprior.report._influence import valid_points
from metaprior.report._sobol import quasi_random
from metaprior.words import MISSING, cut, fixed

NUM_SHARED = 256
FEWEST_RUNS = 3
# Up to this many runs, cells are wide enough for numbers.
MOST_WITH_NUMBERS = 14


class Likeness(NamedTuple):
    """Rank correlations between runs; NaN where a run is flat."""

    names: list[str]
    correlation: Float[np.ndarray, "t t"]


def likeness_of(prior: Prior, findings: Findings) -> Likeness | None:
    """How the past runs relate, as far as the prior holds them; `None` if it holds fewer than
    three.

    A Gaussian process fitted to each run alone says what the run expects of points that all runs
    share.
    """
    kept = PastMeans.among(prior.contents.arrays)
    if kept is not None and len(kept.level):
        names, past = _names(prior, findings, len(kept.level)), kept
    else:
        examples = [example for example in findings.examples if example.points]
        if len(examples) < FEWEST_RUNS:
            return None
        past = _fitted(prior, examples)
        found = [e.name or f"run {i}" for i, e in enumerate(examples, start=1)]
        names = [found[i] for i in chosen_runs(len(examples))]
    if len(names) < FEWEST_RUNS:
        return None
    return Likeness(names, rank_correlation(past.values(_shared_points(prior, len(names)))))


def _names(prior: Prior, findings: Findings, count: int) -> list[str]:
    """What the user calls the runs that the prior holds; else their numbers."""
    total = prior.trained_on.get("tasks")
    labels = {task.task: task.label for task in findings.tasks}
    kept = chosen_runs(total) if isinstance(total, int) and total > 0 else np.arange(count)
    if len(kept) != count:
        kept = np.arange(count)
    return [labels.get(int(i), f"run {i + 1}") for i in kept]


def _fitted(prior: Prior, examples: list[Example]) -> PastMeans:
    longest = max(len(example.values) for example in examples)
    x = np.zeros((len(examples), longest, prior.space.num_inputs))
    y, mask = np.zeros(x.shape[:2]), np.zeros(x.shape[:2], bool)
    for i, example in enumerate(examples):
        count = len(example.values)
        x[i, :count] = prior.space.embed(prior.space.encode(list(example.points)))
        y[i, :count] = direction_sign(prior.direction) * np.array(example.values)
        mask[i, :count] = True
    return past_means(x, y, mask)


def _shared_points(prior: Prior, count: int) -> Float[np.ndarray, "t k d"]:
    """The same points for each of `count` runs."""
    space = prior.space
    points = space.embed(valid_points(space, quasi_random(NUM_SHARED, len(space.names))))
    return np.broadcast_to(points, (count, *points.shape))


def rank_correlation(values: Float[np.ndarray, "t k"]) -> Float[np.ndarray, "t t"]:
    """Spearman's, between rows; NaN where all values of a row are equal."""
    ranks = np.argsort(np.argsort(values, axis=1, kind="stable"), axis=1).astype(float)
    is_flat = np.ptp(values, axis=1) <= 1e-12 * np.max(np.abs(values), axis=1)
    correlation = np.corrcoef(ranks)
    correlation[is_flat] = correlation[:, is_flat] = np.nan
    return correlation


def matrix(likeness: Likeness, outliers: frozenset[str] = frozenset()) -> Html:
    """A table of coloured cells, a row and a column for each run in their order."""
    count = len(likeness.names)
    header = element(
        "tr",
        element("th", "Run", scope="col"),
        *(element("th", str(i), scope="col") for i in range(1, count + 1)),
    )
    rows = [
        element(
            "tr",
            element(
                "th",
                joined([f"{i + 1} ", name(cut(words, 24))]),
                scope="row",
                class_="outlier" if words in outliers else None,
            ),
            *(_cell(likeness, i, j) for j in range(count)),
        )
        for i, words in enumerate(likeness.names)
    ]
    caption = (
        "Which runs look alike: rank correlation of what a Gaussian process fitted to each run "
        "alone expects at the same points; 1 is the same order, −1 the opposite one."
    )
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", header),
            element("tbody", *rows),
            class_="matrix" + ("" if count <= MOST_WITH_NUMBERS else " dense"),
        ),
        class_="scroll",
    )


def _cell(likeness: Likeness, i: int, j: int) -> Html:
    number = float(likeness.correlation[i, j])
    said = MISSING if np.isnan(number) else fixed(number, 1)
    style = {} if np.isnan(number) else {"style": f"--r: {100 * abs(number):.0f}%"}
    label: dict[str, Any] = {"title": f"{likeness.names[i]}, {likeness.names[j]}: {said}"}
    # Cells are narrow: .3 stands for 0.3.
    short = said.replace("0.", ".", 1) if said not in ("0.0", "1.0") else said[0]
    return element("td", short, class_="unlike" if number < 0 else "like", **style, **label)
