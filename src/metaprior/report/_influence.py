"""Which dimensions the prior mean depends on, as bars."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief import Prior
from metaprior.bo import free_moves
from metaprior.data import Categorical, Space
from metaprior.report._html import Html, element, joined, name, paragraph
from metaprior.report._sobol import SobolIndices, sobol_indices
from metaprior.words import counted, cut, number

MOST_BARS, MOST_PAIRS = 12, 3
# A pair that explains less than this share of the variance is not worth a bar.
LEAST_SHARE = 0.01
# Points whose predictions fit in memory together.
AT_ONCE = 2048


class Influence(NamedTuple):
    """How the variance of the prior mean over the space is explained, largest first.

    - `main`: name, share explained alone, and share with all its interactions.
    - `pairs`: two names, and the share that they explain together and not alone.
    - `std`: of the mean over the space, in the unit of the value.
    """

    main: Sequence[tuple[str, float, float]]
    pairs: Sequence[tuple[str, str, float]]
    std: float


def influence_of(prior: Prior) -> Influence | None:
    """The influence of each dimension; `None` where the prior mean is the same everywhere."""
    space, belief = prior.space, prior.condition([], []).belief

    def mean(u: Float[np.ndarray, "k d"]) -> Float[np.ndarray, " k"]:
        x = valid_points(space, u)
        parts = [x[i : i + AT_ONCE] for i in range(0, len(x), AT_ONCE)]
        return np.concatenate([belief.moments(part).mean for part in parts])

    found = sobol_indices(mean, len(space.names))
    return None if found is None else _named(found, list(space.names))


def _named(found: SobolIndices, names: list[str]) -> Influence:
    # What was estimated of the total is never less than what was estimated of its parts.
    total = np.maximum(found.total, found.main)
    order = np.argsort(-total, kind="stable")
    main = [(names[i], float(found.main[i]), float(total[i])) for i in order]
    upper = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
    pairs = [(names[i], names[j], float(found.pairs[i, j])) for i, j in upper]
    largest = sorted(pairs, key=lambda pair: -pair[2])[:MOST_PAIRS]
    return Influence(main, [pair for pair in largest if pair[2] >= LEAST_SHARE], found.std)


def valid_points(space: Space, u: Float[np.ndarray, "k d"]) -> Float[np.ndarray, "k columns"]:
    """Points of the space for one number between 0 and 1 per dimension, all values of a dimension
    equally likely; what does not exist at a point has no say there."""
    columns = []
    for dimension, share in zip(space.dimensions, u.T, strict=True):
        if isinstance(dimension, Categorical):
            count = len(dimension.choices)
            chosen = np.minimum((share * count).astype(int), count - 1)
            columns.append(np.eye(count)[chosen])
        else:
            columns.append(share[:, None])
    return free_moves(space).snap(np.concatenate(columns, axis=1))


def influence_bars(influence: Influence) -> Html:
    """Bars for dimensions and for pairs of them."""
    shown = influence.main[:MOST_BARS]
    rows = [_bar(name(cut(words, 60)), main, total) for words, main, total in shown]
    left = len(influence.main) - len(shown)
    parts = [element("div", *rows, class_="bars", role="list")]
    if left:
        parts.append(paragraph(f"{counted(left, 'more dimension')} with less influence."))
    if influence.pairs:
        pairs = [
            _bar(joined([name(cut(one, 30)), " × ", name(cut(other, 30))]), 0.0, share)
            for one, other, share in influence.pairs
        ]
        parts.append(element("h3", "Largest interactions of two dimensions"))
        parts.append(element("div", *pairs, class_="bars", role="list"))
    return joined(parts)


def influence_words(influence: Influence, unit: str) -> str:
    """How much there is to explain."""
    spread = f"{number(influence.std)} {unit}".strip()
    return f"The prior mean varies over the space, with a standard deviation of {spread}:"


def _bar(words: Html, main: float, total: float) -> Html:
    """One row: a name, the share alone as a full bar, interactions as a pale one, and both in
    numbers."""
    alone = element("span", class_="alone", style=f"width: {100 * main:.1f}%")
    beside = min(total, 1.0) - main
    more = element("span", class_="beside", style=f"width: {100 * beside:.1f}%")
    said = _percent(total)
    if main > 0.0 and _percent(main) != said:
        said = f"{_percent(main)}, {said} with others"
    return element(
        "div",
        element("span", words, class_="what"),
        element("span", alone, more, class_="track"),
        element("span", said, class_="share"),
        role="listitem",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.005 else "< 1 %" if share > 0.0 else "0 %"
