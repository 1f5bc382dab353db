"""`prior.plot()` and `optimizer.plot()`: what they show is what prior and run say."""

from dataclasses import replace

import numpy as np
import pytest

import metaprior as mp
from metaprior.data import Quantity
from metaprior.methods import FixedGP, Guarded
from metaprior.plots import RunHistory
from tests.report.made_up import make_runs

SPACE = mp.Space(
    x=mp.Real(-1.0, 1.0),
    rate=mp.Real(1e-3, 1.0, log=True),
    kind=mp.Categorical(["a$", "b$"]),
)


@pytest.fixture(scope="module")
def prior():
    tasks = mp.Tasks.from_runs(
        make_runs(SPACE, 3, 6),
        space=SPACE,
        direction="minimize",
        quantity=Quantity("loss", "V"),
    )
    return mp.learn(tasks, method=Guarded(FixedGP()), seed=0)


def axes_by_label(figure):
    return {ax.get_xlabel(): ax for ax in figure.axes}


def test_prior_plot_shows_the_band_along_every_dimension(prior):
    figure = prior.plot({"x": 0.5})
    found = axes_by_label(figure)
    assert set(found) == set(SPACE.names)
    assert {ax.get_ylabel() for ax in figure.axes} == {"loss in V"}
    assert len({ax.get_ylim() for ax in figure.axes}) == 1
    [mean] = [line for line in found["rate"].lines if line.get_label() == "mean"]
    points = [{"x": 0.5, "rate": 1e-3, "kind": "a$"}, {"x": 0.5, "rate": 1.0, "kind": "a$"}]
    expected, _ = prior.condition([], []).predict(points)
    np.testing.assert_allclose(np.asarray(mean.get_ydata())[[0, -1]], expected, rtol=1e-9)
    assert [tick.get_text() for tick in found["kind"].get_xticklabels()] == ["a$", "b$"]


def test_prior_plot_is_drawn_without_a_window(prior, tmp_path):
    path = tmp_path / "prior.png"
    prior.plot().savefig(path)
    assert path.stat().st_size > 10_000


def test_prior_plot_names_an_unknown_dimension(prior):
    with pytest.raises(ValueError, match="'y', which is none of the dimensions"):
        prior.plot({"y": 1.0})


def test_optimizer_plot_shows_the_run_trust_and_slices_through_the_best(prior):
    optimizer = mp.Optimizer(prior, seed=0)
    told = [3.0, None, 1.0, 2.0]
    for value, x in zip(told, (-1.0, 0.0, 0.5, 1.0), strict=True):
        optimizer.tell({"x": x, "rate": 0.1, "kind": "b$"}, value)
    found = axes_by_label(optimizer.plot())
    assert set(found) == {"query", "observations", *SPACE.names}
    lines = {line.get_label(): line for line in found["query"].lines}
    np.testing.assert_array_equal(lines["best so far"].get_ydata(), [3.0, 3.0, 1.0, 1.0])
    np.testing.assert_array_equal(lines["observed"].get_xdata(), [1, 3, 4])
    np.testing.assert_array_equal(lines["no value"].get_xdata(), [2])
    trust = np.asarray(found["observations"].lines[0].get_ydata())
    assert len(trust) == 4 and trust[-1] == optimizer.trust
    assert len(found["observations"].lines) == 1
    marked = found["x"].lines[-1]
    assert [*map(float, np.concatenate([marked.get_data()[0], marked.get_data()[1]]))] == [0.5, 1.0]
    [mean] = [line for line in found["x"].lines if line.get_label() == "mean"]
    observed = optimizer.observations
    posterior = prior.condition([x for x, _ in observed], [y for _, y in observed])
    expected, _ = posterior.predict([{"x": -1.0, "rate": 0.1, "kind": "b$"}])
    assert np.asarray(mean.get_ydata())[0] == pytest.approx(expected[0], rel=1e-9)


def test_optimizer_plot_before_the_first_answer_is_the_prior(prior):
    found = axes_by_label(mp.Optimizer(prior, seed=0).plot())
    assert set(found) == {"observations", *SPACE.names}
    assert [line.get_label() for line in found["x"].lines] == ["mean"]


def test_optimizer_plot_without_a_guard_has_no_trust():
    tasks = mp.Tasks.from_runs(make_runs(SPACE, 3, 6), space=SPACE)
    optimizer = mp.Optimizer(mp.learn(tasks, method=FixedGP()), seed=0)
    optimizer.tell({"x": 0.0, "rate": 0.1, "kind": "b$"}, 1.0)
    assert set(axes_by_label(optimizer.plot())) == {"query", *SPACE.names}


def test_plots_stay_within_the_bounds_of_the_value(prior):
    bounded = replace(prior, value_bounds=(0.8, 0.9))
    [mean] = [line for line in bounded.plot().axes[0].lines if line.get_label() == "mean"]
    assert np.all((np.asarray(mean.get_ydata()) >= 0.8) & (np.asarray(mean.get_ydata()) <= 0.9))


def test_run_history_ignores_failures_before_and_between():
    run = RunHistory(np.array([np.nan, 2.0, np.nan, 3.0, 1.0]), sign=1.0)
    np.testing.assert_array_equal(run.best_so_far, [np.nan, 2.0, 2.0, 3.0, 3.0])


def test_plot_names_a_missing_matplotlib(prior, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for draw in (prior.plot, mp.Optimizer(prior).plot):
        with pytest.raises(ValueError, match=r"pip install 'metaprior\[plots\]'"):
            draw()
