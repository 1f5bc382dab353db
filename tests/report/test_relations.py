"""Which runs look alike: expected correlations by SciPy, and runs made to differ."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import metaprior as mp
from metaprior.findings import Example, Findings, PastTask
from metaprior.methods import FixedGP, FPacohMap, Weighed
from metaprior.report import write_report
from metaprior.report._relations import likeness_of, matrix, rank_correlation

SPACE = mp.Space(x=mp.Real(0.0, 10.0), kind=mp.Categorical(["a", "b"]))


def runs_up_and_down(signs):
    rng = np.random.default_rng(0)
    runs = []
    for sign in signs:
        points = SPACE.decode(rng.uniform(size=(12, 3)))
        runs.append((points, [sign * point["x"] + 5.0 for point in points]))
    return runs


def test_rank_correlation_is_spearmans():
    values = np.random.default_rng(0).normal(size=(4, 50))
    ranks = scipy.stats.rankdata(values, axis=1)
    expected = np.array([[scipy.stats.pearsonr(a, b)[0] for b in ranks] for a in ranks], float)
    np.testing.assert_allclose(rank_correlation(values), expected, atol=1e-12)


def test_rank_correlation_of_a_flat_row_is_nan():
    found = rank_correlation(np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    assert np.isnan(found[0]).all() and np.isnan(found[:, 0]).all()
    assert found[1, 2] == pytest.approx(-1.0)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_likeness_of_examples_finds_the_run_that_goes_the_other_way(direction):
    runs = runs_up_and_down([1, 1, -1])
    tasks = mp.Tasks.from_runs(runs, space=SPACE, direction=direction)
    named = zip(runs, ("one", None, "three"), strict=True)
    examples = tuple(Example(tuple(p), tuple(v), name=n) for (p, v), n in named)
    prior = mp.learn(tasks, method=FixedGP())
    found = likeness_of(prior, Findings("", examples=examples))
    assert found is not None and found.names == ["one", "run 2", "three"]
    assert found.correlation[0, 1] > 0.9 and found.correlation[0, 2] < -0.9
    assert likeness_of(prior, Findings("", examples=examples[:2])) is None


def test_likeness_of_a_prior_that_holds_its_past_names_the_runs():
    prior = mp.load(Path(__file__).parents[1] / "store" / "format_2" / "weighed_fpacoh_map")
    findings = Findings("", tasks=(PastTask(2, name="odd <one>", outlier=True),))
    found = likeness_of(prior, findings)
    assert found is not None and found.names == ["run 1", "run 2", "odd <one>", "run 4"]
    np.testing.assert_allclose(np.diag(found.correlation), 1.0)
    page = matrix(found, frozenset(["odd <one>"]))
    assert "odd &lt;one&gt;" in page and page.count("<td") == 16
    assert page.count('class="outlier"') == 1
    assert page.count('class="unlike"') == np.sum(found.correlation < 0.0)


def test_report_shows_likeness_where_nothing_else_was_measured(tmp_path):
    prior = mp.load(Path(__file__).parents[1] / "store" / "format_2" / "weighed_fpacoh_map")
    assert prior.findings is None
    text = write_report(prior, tmp_path / "report.html").read_text()
    assert 'id="past-runs"' in text and "Which runs look alike" in text


@pytest.mark.slow
def test_likeness_by_what_a_trained_prior_holds():
    tasks = mp.Tasks.from_runs(runs_up_and_down([1, 1, -1, 1]), space=SPACE)
    prior = mp.learn(tasks, method=Weighed(FPacohMap(num_steps=1)), seed=0)
    found = likeness_of(prior, Findings(""))
    assert found is not None
    others = [0, 1, 3]
    assert np.all(found.correlation[np.ix_(others, others)] > 0.9)
    assert np.all(found.correlation[2, others] < -0.9)


@pytest.mark.slow
def test_likeness_sees_the_features_of_each_run():
    tasks = mp.Tasks.from_runs(
        runs_up_and_down([1, 1, -1]), space=SPACE, features=[{"t": 1.0}, {"t": 2.0}, {"t": 3.0}]
    )
    prior = mp.learn(tasks, method=Weighed(FPacohMap(num_steps=1)), seed=0)
    found = likeness_of(replace(prior, findings=None), Findings(""))
    assert found is not None and found.correlation[0, 2] < -0.9
