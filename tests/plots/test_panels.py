"""What the panels show is what the records say; expected values are computed here, by hand."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from metaprior.belief import HALF_WIDTH_95
from metaprior.plots import (
    CoverageCurve,
    PastQueries,
    RegretCurves,
    draw_belief,
    draw_coverage,
    draw_landscape,
    draw_past_runs,
    draw_regret,
)
from tests.plots.drawn import BELIEF, LANDSCAPE, PRIOR, X

COLOURS = {"ours": "#0000ff", "theirs": "#ff0000"}


@pytest.fixture
def ax():
    return Figure().add_subplot()


def lines(ax):
    return {line.get_label(): line for line in ax.lines}


def band_edges(collection: PolyCollection):
    """The lowest and the highest edge of a band at each of its places on the x axis."""
    vertices = np.asarray(collection.get_paths()[0].vertices)
    places = np.unique(vertices[:, 0])
    at = [vertices[vertices[:, 0] == place, 1] for place in places]
    return places, np.array([y.min() for y in at]), np.array([y.max() for y in at])


def test_bands_of_panels_are_as_wide_as_those_of_predictions(ax):
    unit = BELIEF._replace(mean=np.zeros(len(X)), std=np.ones(len(X)))
    draw_belief(ax, unit, "#ff0000")
    [band] = [each for each in ax.collections if isinstance(each, PolyCollection)]
    np.testing.assert_array_equal(band_edges(band)[2], HALF_WIDTH_95)


def test_draw_past_runs_shows_every_function_and_query(ax):
    past = PastQueries(X, np.stack([X, 2 * X, 3 * X]), np.array([0.5, -0.5]), np.array([1.0, -1.0]))
    draw_past_runs(ax, past)
    *functions, queries = ax.lines
    assert [line.get_ydata()[-1] for line in functions] == [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(queries.get_xydata(), [[0.5, 1.0], [-0.5, -1.0]])


def test_draw_belief_band_holds_95_percent(ax):
    draw_belief(ax, BELIEF, "#0000ff")
    x, low, high = band_edges(ax.collections[0])
    np.testing.assert_allclose(x, X)
    # The 97.5 % quantile of the standard normal distribution, from a table.
    np.testing.assert_allclose(low, X**2 - 0.5 * 1.95996, atol=1e-5)
    np.testing.assert_allclose(high, X**2 + 0.5 * 1.95996, atol=1e-5)
    np.testing.assert_array_equal(lines(ax)["truth"].get_ydata(), X**3)


def test_draw_belief_without_observations_shows_none(ax):
    draw_belief(ax, BELIEF, "#0000ff")
    draw_belief(other := Figure().add_subplot(), PRIOR, "#0000ff")
    assert len(ax.lines) == len(other.lines) + 1


def test_draw_coverage_draws_over_the_diagonal(ax):
    levels = np.array([0.0, 0.5, 1.0])
    few = CoverageCurve("ours", 1, levels, np.array([0.0, 0.7, 1.0]))
    many = CoverageCurve("ours", 8, levels, np.array([0.0, 0.4, 1.0]))
    draw_coverage(ax, [few, many], COLOURS)
    drawn = lines(ax)
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[0, 0], [1, 1]])
    assert drawn["ours, 1 point"].get_ydata()[1] == 0.7
    assert drawn["ours, 8 points"].get_ydata()[1] == 0.4
    assert drawn["ours, 8 points"].get_linestyle() == "-" != drawn["ours, 1 point"].get_linestyle()


def test_draw_regret_shows_median_and_middle_half_on_a_logarithmic_axis(ax):
    regret = np.array([[1.0, 0.1], [2.0, 0.2], [3.0, 0.3], [4.0, 0.4], [50.0, 5.0]])
    draw_regret(ax, [RegretCurves("ours", regret)], COLOURS)
    line = lines(ax)["ours"]
    np.testing.assert_allclose(line.get_xydata(), [[1, 3.0], [2, 0.3]])
    vertices = np.asarray(ax.collections[0].get_paths()[0].vertices)
    at_start = vertices[vertices[:, 0] == 1, 1]
    assert (at_start.min(), at_start.max()) == (2.0, 4.0)
    assert ax.get_yscale() == "log"
    assert line.get_color() == COLOURS["ours"]


def test_draw_regret_accepts_zero(ax):
    draw_regret(ax, [RegretCurves("ours", np.array([[1.0, 0.0], [1.0, -1e-15]]))], COLOURS)
    drawn = lines(ax)["ours"].get_ydata()
    assert np.all(np.isfinite(drawn)) and np.all(drawn > 0)


def test_draw_landscape_numbers_the_queries_in_order(ax):
    draw_landscape(ax, LANDSCAPE, COLOURS)
    assert [(text.get_text(), text.get_position()) for text in ax.texts] == [
        ("1", (0.2, 1.4)),
        ("2", (0.3, 1.6)),
        ("1", (0.9, 0.1)),
    ]
    np.testing.assert_array_equal(ax.lines[-1].get_xydata(), [[0.25, 1.5]])


def test_draw_landscape_accepts_a_flat_one(ax):
    draw_landscape(ax, LANDSCAPE._replace(value=np.full((6, 4), 7.0)), COLOURS)
    assert len(ax.texts) == 3
