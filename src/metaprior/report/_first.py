"""What the optimiser would ask first in a new run, what it expects there, and why."""

from typing import Any, NamedTuple

import numpy as np

from metaprior.belief import HALF_WIDTH_95, Posterior, Prior
from metaprior.bo import Optimizer
from metaprior.data import direction_sign
from metaprior.report._html import Html, element, joined, name, unbroken
from metaprior.report._influence import valid_points
from metaprior.report._sobol import quasi_random
from metaprior.words import counted, cut, number, value

NUM_QUERIES = 3
SEED = 0
DIGITS = 3
# Functions drawn from the prior, and queries at random that they are compared at.
NUM_FUNCTIONS, NUM_RANDOM = 512, 128
# What a past run's length is taken for where it is not known.
USUAL_LENGTH = 10
MOST_NAMED = 8
ORDINALS = ("First", "Second", "Third")


class FirstQuery(NamedTuple):
    """A query that the optimiser would make before it knows anything of a run.

    - `mean`, `half_width`: of the 95 % band of its observation.
    - `usual`: what is expected of a query at random.
    - `left`: half the width of the band once the earlier ones of these queries are answered.
    - `beats_one`, `beats_best`: probability that the function is better there than at one query at
      random, and than at the best of as many as a past run had.
    """

    point: dict[str, Any]
    mean: float
    half_width: float
    usual: float
    left: float
    beats_one: float
    beats_best: float


def first_queries(prior: Prior) -> list[FirstQuery]:
    """The first queries of a run, to be made side by side."""
    points = Optimizer(prior, seed=SEED).ask(NUM_QUERIES, digits=DIGITS)
    space, sign = prior.space, direction_sign(prior.direction)
    posterior = prior.condition([], [])
    random = valid_points(space, quasi_random(NUM_RANDOM, len(space.names)))
    drawn = sign * posterior.sample([*points, *space.decode(random)], NUM_FUNCTIONS, seed=SEED)
    mean, lower, upper = posterior.mean_and_band(points)
    usual = sign * float(np.mean(posterior.belief.moments(random).mean))
    length = usual_length(prior)
    found = []
    for i, point in enumerate(points):
        worse = np.mean(drawn[:, i : i + 1] > drawn[:, len(points) :], axis=1)
        found.append(
            FirstQuery(
                point,
                float(mean[i]),
                float(upper[i] - lower[i]) / 2.0,
                usual,
                _left(prior, posterior, points[: i + 1]),
                float(np.mean(worse)),
                float(np.mean(worse**length)),
            )
        )
    return found


def usual_length(prior: Prior) -> int:
    """How many points a past run had on average."""
    runs, points = prior.trained_on.get("tasks"), prior.trained_on.get("observations")
    if not (isinstance(runs, int) and isinstance(points, int) and 0 < runs <= points):
        return USUAL_LENGTH
    return round(points / runs)


def _left(prior: Prior, posterior: Posterior, points: list[dict[str, Any]]) -> float:
    """Half the width of the band at the last of the points, once the others are answered as
    expected."""
    earlier = points[:-1]
    expected, _ = posterior.predict(earlier)
    _, std = prior.condition(earlier, expected).predict(points[-1:])
    return HALF_WIDTH_95 * float(std[0])


def query_cards(queries: list[FirstQuery], prior: Prior, order: list[str]) -> Html:
    """One card for each query.

    - `order`: the dimensions, those that matter most first: what does not fit is left out.
    """
    length = usual_length(prior)
    cards = (_card(i, query, prior, order, length) for i, query in enumerate(queries))
    return element("div", *cards, class_="queries")


def _card(i: int, query: FirstQuery, prior: Prior, order: list[str], length: int) -> Html:
    in_unit = prior.quantity.with_unit
    shown = [words for words in order if words in query.point][:MOST_NAMED]
    rows = [
        element("div", element("dt", name(cut(words, 40))), element("dd", _set(query, words)))
        for words in prior.space.names
        if words in shown
    ]
    left = len(query.point) - len(shown)
    more = [element("p", f"and {counted(left, 'more dimension')}", class_="small")] if left else []
    chance = (
        f"{_percent(query.beats_one)} to beat a query at random, {_percent(query.beats_best)} to "
        f"beat the best of {length}"
    )
    return element(
        "div",
        element("h3", ORDINALS[i]),
        element("dl", *rows, class_="point"),
        *more,
        element(
            "p",
            element("strong", in_unit(number(query.mean)), class_="big"),
            f" ± {in_unit(number(query.half_width, 2))}",
        ),
        element("p", f"Chance: {chance}.", class_="small"),
        element("p", _why(i, query, prior), class_="small"),
    )


def _set(query: FirstQuery, words: str) -> str:
    return cut(value(query.point[words]), 40)


def _why(i: int, query: FirstQuery, prior: Prior) -> Html:
    """What speaks for the query: a good value, or something to learn from it."""

    def in_unit(number: str) -> str:
        return unbroken(prior.quantity.with_unit(number))

    if i == 0:
        said = f"a query at random is expected to give {in_unit(number(query.usual))}."
    else:
        asked = "answer to the first" if i == 1 else "answers to the first two"
        left = in_unit(f"± {number(query.left, 2)}")
        said = f"after the {asked}, this one is still uncertain by {left}."
    return joined([element("strong", "Why: "), said])


def _percent(share: float) -> str:
    """A chance in words; none that was estimated from drawn functions is certain."""
    said = "> 99 %" if share > 0.99 else "< 1 %" if share < 0.01 else f"{100 * share:.0f} %"
    return unbroken(said)
