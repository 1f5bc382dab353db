"""Posteriors after the first points of past runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from metaprior.belief import Prior
from metaprior.data import Real, direction_sign
from metaprior.findings import Example
from metaprior.plots import FAINT, INK, Slice, draw_slice, limits_of, places_of, slices_through
from metaprior.report._drawing import PAPER, drawn
from metaprior.report._held_out import Figure
from metaprior.report._slices import LONGEST_LABEL
from metaprior.words import counted, cut, value

# At most this many points are given, and at most half of the run.
MOST_GIVEN = 5
MOST_EXAMPLES = 2
# Only the first points of a long run are drawn.
MOST_POINTS = 200
# At most this many of the values at which the other dimensions are held are named.
MOST_NAMED = 6


def posterior_figures(
    prior: Prior, examples: Sequence[Example], slices: Sequence[Slice]
) -> list[Figure]:
    """A posterior for each of two examples, along the most influential real dimension that exists
    at its best point.

    - `slices`: of the prior, most influential first.
    """
    usable = [example for example in examples if example.points][:MOST_EXAMPLES]
    real = [s.name for s in slices if isinstance(s.dimension, Real)]
    numeric = [s.name for s in slices if not s.is_discrete]
    names = [*real, *numeric, *(s.name for s in slices)]
    return [
        _posterior_figure(prior, example, names, number)
        for number, example in enumerate(usable, start=1)
    ]


def _posterior_figure(prior: Prior, example: Example, names: list[str], number: int) -> Figure:
    points, values = list(example.points[:MOST_POINTS]), np.array(example.values[:MOST_POINTS])
    given = min(MOST_GIVEN, max(1, len(points) // 2))
    best = int(np.argmax(direction_sign(prior.direction) * values[:given]))
    posterior = prior.condition(points[:given], values[:given], features=example.features)
    name = next(name for name in names if name in points[best])
    [along] = slices_through(posterior.mean_and_band, prior.space, points[best], [name])
    places = places_of(along.dimension, [point.get(name) for point in points])

    def draw(ax: Any) -> None:
        draw_slice(along, limits_of([along], values.tolist()), ax)
        ax.plot(places[given:], values[given:], "o", color=FAINT, markersize=4.5, mew=0, zorder=4)
        others = [i for i in range(given) if i != best]
        ax.plot(
            places[others], values[others], "o", mfc=PAPER, mec=INK, mew=1.6, markersize=6, zorder=5
        )
        ax.plot(places[best], values[best], "D", color=INK, markersize=7, zorder=6)
        ax.set(xlabel=cut(name, 40), ylabel=cut(prior.quantity.label, LONGEST_LABEL))

    label = (
        f"Posterior along {name} after {counted(given, 'point')} of a past run of "
        f"{len(values)} points, best of them {value(float(values[best]))}."
    )
    drawing = drawn(draw, ident=f"posterior-{number}", label=label, height=250)
    run = "A past run" if example.name is None else cut(example.name, 60)
    title = f"{run}: after {counted(given, 'point')}, along {cut(name, 60)}"
    return Figure(title, drawing, _held_at(points[best], name))


def _held_at(point: dict[str, Any], name: str) -> str:
    others = [f"{cut(other, 30)} = {value(v)}" for other, v in point.items() if other != name]
    if not others:
        return "Mean and 95 % band of the next observation."
    named = ", ".join(others[:MOST_NAMED])
    more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    return (
        f"A slice through the best of these points ({named}{more}); the other points of the run "
        "are off the slice."
    )
