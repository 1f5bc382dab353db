"""The demo's picture, and what is drawn in it and counted from it."""

import io
import struct

import jax
import matplotlib
import numpy as np
from matplotlib.figure import Figure

from metaprior.lab.demo._computation import collected_tasks
from metaprior.lab.demo._figure import panels_figure
from metaprior.lab.demo._numbers import speed_up
from metaprior.lab.environments import Mixture1d
from metaprior.lab.studies import PolicyRace, collect_histories
from metaprior.plots import CoverageCurve, PastQueries, RegretCurves
from tests.plots.drawn import BELIEF, LANDSCAPE, PRIOR, X

SIZES = (1, 8)


def small_demo_figure() -> Figure:
    past = PastQueries(X, np.stack([X, 2 * X]), np.array([0.5]), np.array([0.5]))
    levels = np.linspace(0.0, 1.0, 3)
    return panels_figure(
        ("ours", "theirs", "chance"),
        past,
        {"theirs": [PRIOR, BELIEF], "ours": [PRIOR, BELIEF]},
        [
            CoverageCurve(name, size, levels, levels)
            for name in ("ours", "theirs")
            for size in (1, 8)
        ],
        [RegretCurves(name, np.full((2, 3), 0.5)) for name in ("ours", "theirs", "chance")],
        LANDSCAPE,
    )


def test_demo_figure_is_a_png_of_2000_by_1300_pixels():
    buffer = io.BytesIO()
    small_demo_figure().savefig(buffer, format="png")
    header = buffer.getvalue()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", header[16:24]) == (2000, 1300)


def test_demo_figure_keeps_one_colour_for_each_name():
    figure = small_demo_figure()
    drawn = {
        (str(line.get_label()).split(",")[0], line.get_color())
        for ax in figure.axes
        for line in ax.lines
    }
    colours = {name: {c for n, c in drawn if n == name} for name in ("ours", "theirs", "chance")}
    assert [len(found) for found in colours.values()] == [1, 1, 1]
    assert len(set.union(*colours.values())) == 3
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert [title[0] for title in titles if title] == list("abcdef")


def test_demo_figure_leaves_rc_params_unchanged():
    before = dict(matplotlib.rcParams)
    small_demo_figure()
    assert dict(matplotlib.rcParams) == before


def test_demo_past_queries_lie_on_the_functions_that_are_drawn(monkeypatch):
    family, key = Mixture1d(), jax.random.key(1)

    def random_race(policy, tasks, num_queries, *, key, noise_std):
        """Queries anywhere: what matters here is only on which functions they are made."""
        x = np.random.default_rng(0).uniform(size=(4, num_queries, 1))
        y = np.stack(
            [t.evaluate(20 * u - 10) for t, u in zip(family.unstack(tasks), x, strict=True)]
        )
        return PolicyRace(y, y, x, y)

    monkeypatch.setattr("metaprior.lab.studies._races.race", random_race)
    collected = collect_histories(family, 4, 6, key=key)
    for i, task in enumerate(collected_tasks(family, 4, key)):
        points, values = collected.run(i)
        np.testing.assert_allclose(task.evaluate(points), values, rtol=1e-10)


def test_demo_speed_up_counts_queries():
    ours = np.array([[9.0, 2.0, 0.0], [9.0, 4.0, 0.0]])
    theirs = np.array([[9.0, 5.0, 3.5], [9.0, 5.0, 2.5]])
    assert speed_up(ours, theirs) == {"queries_of_f_pacoh": 2, "queries_of_fixed_gp": 3}
    assert speed_up(theirs, ours)["queries_of_f_pacoh"] is None
