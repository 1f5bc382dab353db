"""Figures of priors show the beliefs they are given."""

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from metaprior.lab.plots import hyper_prior_figure, prior_and_posterior
from metaprior.plots import (
    Belief,
    PastQueries,
    draw_belief,
)

X = np.linspace(0.0, 1.0, 5)
NONE = np.zeros(0)
SAMPLES = np.stack([X, 2 * X, 3 * X])
PRIOR = Belief(X, 0 * X, 1 + 0 * X, None, NONE, NONE, SAMPLES)
POSTERIOR = Belief(X, X, 0.1 + 0 * X, X**2, np.array([0.5]), np.array([0.25]))
CURVES = {"FixedGP": (PRIOR, POSTERIOR), "FPacohMap": (PRIOR, POSTERIOR)}


def test_draw_belief_draws_samples_and_no_missing_truth():
    ax = Figure().add_subplot()
    draw_belief(ax, PRIOR, "#0000ff")
    drawn = [np.asarray(line.get_ydata()) for line in ax.lines]
    np.testing.assert_array_equal(drawn, [*SAMPLES, PRIOR.mean])
    assert ax.get_legend_handles_labels()[1] == ["95 % band", "samples", "mean"]


@pytest.mark.parametrize("with_past", [False, True])
def test_prior_and_posterior_has_two_panels_per_method(with_past):
    past = PastQueries(X, SAMPLES, X, X) if with_past else None
    figure = prior_and_posterior(CURVES, past)
    axes = figure.axes[with_past:]
    assert [ax.get_title() for ax in axes] == ["Fixed GP", "", "F-PACOH-MAP", ""]
    truths = [[line.get_label() for line in ax.lines].count("truth") for ax in axes]
    assert truths == [0, 1, 0, 1]
    colours = [ax.lines[0].get_color() for ax in axes]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    assert len({ax.get_ylim() for ax in axes}) == 1
    low, high = axes[0].get_ylim()
    assert low < -1.96 and high > 1.96  # the widest band is inside


def test_hyper_prior_figure_shows_where_the_data_lie():
    runs = [(np.array([0.1, 0.3]), np.array([0.0, 1.0])), (np.array([0.2]), np.array([0.5]))]
    figure = hyper_prior_figure({"smooth": (PRIOR, POSTERIOR), "rough": (PRIOR, PRIOR)}, runs)
    above, below = figure.axes[:2], figure.axes[2:]
    assert [ax.get_title() for ax in above] == ["smooth", "rough"]
    for ax in below:
        span = ax.patches[0].get_extents().transformed(ax.transData.inverted())
        assert (span.x0, span.x1) == pytest.approx((0.1, 0.3))
        dots = [line.get_xdata() for line in ax.lines if line.get_marker() == "."]
        np.testing.assert_array_equal(np.concatenate(dots), [0.1, 0.3, 0.2])


def test_prior_figures_leave_rc_params_unchanged():
    before = dict(matplotlib.rcParams)
    prior_and_posterior(CURVES)
    assert dict(matplotlib.rcParams) == before
