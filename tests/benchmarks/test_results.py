"""The results page: its statistics against SciPy and by hand, and a page of a tiny study."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.results import _samples as samples
from benchmarks.results._explanation import stuck
from benchmarks.results._page import minutes
from benchmarks.results._reading import places
from benchmarks.results._statistics import against_others, compare, estimate, rank, score
from benchmarks.results._tables import beside_the_paper, by_method, configurations
from metaprior.lab.environments import Table
from metaprior.lab.studies import Job, keys_of, start_study, write_record


def frame(method, values, environment="branin", units=None):
    """Samples of one method: one row for each of `values`, of as many seeds."""
    count = len(values)
    return pd.DataFrame(
        {
            "environment": environment,
            "method": method,
            "seed": range(count),
            "task": 0,
            "unit": [str(i) for i in range(count)] if units is None else units,
            "value": np.asarray(values, float),
        }
    )


numbers = st.lists(st.floats(-100, 100), min_size=3, max_size=12)


@given(numbers)
def test_estimate_interval_agrees_with_scipy(values):
    mean, half_width, count = estimate(frame("A", values))
    assert count == len(values)
    if np.ptp(values) > 1e-9:
        low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        np.testing.assert_allclose([mean - half_width, mean + half_width], [low, high], atol=1e-9)


def test_estimate_averages_units_before_the_interval():
    """Two datasets, one met three times: the mean of 2 and 6, not of all four numbers."""
    some = frame("A", [1.0, 2.0, 3.0, 6.0], units=["a", "a", "a", "b"])
    found = estimate(some)
    assert (found.mean, found.count) == (4.0, 2)
    np.testing.assert_allclose(found.half_width, stats.t.ppf(0.975, 1) * 2.0)
    assert estimate(some.assign(unit=list("abcd"))).mean == 3.0


@settings(max_examples=40)
@given(numbers, st.integers(0, 2**31))
def test_compare_agrees_with_a_paired_t_test(values, seed):
    other = np.asarray(values) + np.random.default_rng(seed).normal(0.5, 1.0, len(values))
    found = compare(frame("A", values), frame("B", other), "lower")
    test = stats.ttest_rel(values, other)  # of differences that are never all equal
    if abs(test.pvalue - 0.05) > 1e-6:
        expected = "tie" if test.pvalue > 0.05 else "win" if test.statistic < 0 else "loss"
        assert found.verdict == expected
        mirrored = {"win": "loss", "loss": "win", "tie": "tie"}[expected]
        assert compare(frame("B", other), frame("A", values), "lower").verdict == mirrored
        assert compare(frame("A", values), frame("B", other), "higher").verdict == mirrored


def test_compare_pairs_the_same_seed_and_task():
    """Rows in another order, and one without a partner, change nothing."""
    ours, theirs = frame("A", [1.0, 2.0, 3.0]), frame("B", [2.0, 3.1, 4.0, 99.0])
    found = compare(ours, theirs.iloc[::-1], "lower")
    assert found.verdict == "win" and found.advantage.count == 3
    np.testing.assert_allclose(found.advantage.mean, (1.0 + 1.1 + 1.0) / 3)
    with pytest.raises(ValueError, match="A and B have no"):
        compare(ours, theirs.assign(task=7), "lower")


def test_compare_takes_repeated_seeds_on_a_table_for_no_evidence():
    """Ten seeds that say the same of two datasets are two numbers: a tie, not a win."""
    units = ["a", "b"] * 10
    ours = frame("A", [0.0, 0.0] * 10, units=units)
    theirs = frame("B", [1.0, 3.0] * 10, units=units)
    assert compare(ours, theirs, "lower").verdict == "tie"
    alone = [each.assign(unit=range(20)) for each in (ours, theirs)]
    assert compare(alone[0], alone[1], "lower").verdict == "win"


def study():
    """By hand: A is below B everywhere, C scatters around A, P has two seeds only."""
    base = np.array([1.0, 2.0, 3.0, 4.0])
    parts = [
        frame("A", base),
        frame("B", base + [1.0, 1.1, 0.9, 1.0]),
        frame("C", base + [0.5, -0.4, 0.5, -0.4]),
        frame("P", [0.5, 1.5]),
    ]
    return pd.concat(parts, ignore_index=True)


def test_rank_by_hand():
    ranking = rank(study(), "lower", ["P"])
    assert ranking.best == "A" and ranking.leaders == {"A", "C", "P"}
    assert rank(study(), "lower").best == "P"
    assert rank(study(), "higher", ["P"]) == ("B", frozenset({"B"}))


def test_against_others_by_hand():
    both = pd.concat([study(), study().assign(environment="camelback")])
    flipped = both.assign(
        value=both["value"].where(both["environment"] == "branin", -both["value"])
    )
    found = against_others(flipped, "A", "lower")
    assert score(found["B"]) == (1, 0, 1)
    assert score(found["C"]) == (0, 2, 0)
    assert found["B"]["branin"].verdict == "win"


def test_results_mark_places_and_bold():
    named = study().replace({"method": {"A": "FPacohMap", "P": "RankWeightedGP"}})
    assert places(named) == {"Random Branin": "first"}
    assert places(named, "higher") == {"Random Branin": "behind"}
    lines = by_method({"t = 1": named}, "lower").splitlines()
    bold = {line.split("|")[1].strip() for line in lines if "**" in line}
    assert bold == {"F-PACOH-MAP", "C", "RWGP (5 seeds)"}


def test_samples_find_the_dataset_of_a_task():
    """`task` is a place in an order that each seed has anew."""
    for environment, seed in itertools.product(("glmnet", "rpart"), (0, 7)):
        drawn = Table(environment).test_tasks(4, key=keys_of(seed).tasks)
        found = [samples.tested_dataset(environment, seed, task) for task in range(4)]
        assert found == np.asarray(drawn.data_id).tolist()
    assert samples.tested_dataset("glmnet", 0, 0) != samples.tested_dataset("glmnet", 1, 0)
    rows = pd.DataFrame({"environment": ["branin", "glmnet"], "seed": 3, "task": 2})
    units = samples.with_units(rows, lambda *where: 42)["unit"]
    assert units.tolist() == ["3/2", "42"]


def test_samples_are_made_from_records(tmp_path):
    """Two contexts, the metrics repeated at two levels: the mean over contexts, once."""
    folder = start_study(tmp_path / "calibration", {"kind": "calibration"})
    columns = {
        "seed": np.zeros(4, int),
        "task": np.zeros(4, int),
        "context": np.array([1, 1, 8, 8]),
        "level": np.array([0.0, 1.0, 0.0, 1.0]),
        "calibration_error": np.array([0.2, 0.2, 0.4, 0.4]),
        "log_likelihood": np.array([1.0, 1.0, 2.0, 2.0]),
    }
    specification = {"environment": "branin", "method": "FixedGP"}
    write_record(folder, Job("metaprior.lab.studies:run_calibration", specification), columns)
    rows = samples.calibration_records(tmp_path)
    assert len(rows) == 2
    [row] = samples.value_of(rows, "calibration_error").to_dict("records")
    assert row["unit"] == "0/0"
    np.testing.assert_allclose(row["value"], 0.3)


def test_samples_of_cumulative_regret_leave_out_random_search():
    rows = pd.concat([frame("A", [1.0, 2.0]), frame("RandomSearch", [np.nan, np.nan])])
    rows = rows.rename(columns={"value": "inference_regret"})
    found = samples.cumulative(rows.assign(seed=0, unit="0"))
    assert found["method"].tolist() == ["A"] and found["value"].tolist() == [3.0]


def test_results_stuck_runs_by_hand():
    """Regret 1 at first; one run ends at 0.5 and moved late, one did not, one is good."""
    ends = {"late": (0.6, 0.5), "still": (0.5, 0.5), "good": (0.0, 0.0)}
    rows = [
        {"method": method, "environment": "branin", "seed": 0, "task": 0, "step": step}
        | {"simple_regret": regret}
        for method, (half, last) in (ends | {"RandomSearch": (0.9, 0.8)}).items()
        for step, regret in ((1, 1.0), (50, half), (100, last))
    ]
    shares = stuck(pd.DataFrame(rows))
    assert [shares[name, "branin"] for name in ends] == [0.0, 1.0, 0.0]


def test_results_tables_of_the_paper_and_of_configurations(tmp_path):
    printed = {"fixedgp": {"branin": (0.123, 0.004)}}
    text = beside_the_paper(frame("FixedGP", [0.2, 0.4]), printed, "lower")
    assert "*0.123 ± 0.004*" in text and "0.3 ± 1.3" in text
    (tmp_path / "branin").mkdir()
    chosen = {
        "format": "metaprior-configuration",
        "format_version": 1,
        "environment": "branin",
        "method": "FixedGP",
        "settings": {"lengthscale": 0.25, "variance": 1.0},
        "scores": {"simple_regret": 1e-5, "inference_regret": 0.0},
        "searched": {"configurations": 7, "ranges": {"lengthscale": ["log-uniform", 0.1, 1]}},
    }
    (tmp_path / "branin" / "FixedGP.json").write_text(json.dumps(chosen))
    assert "| Random Branin | 0.25 | 7 | 1e-05 | 0 |" in configurations(tmp_path)


def test_results_wall_time_is_the_sum_of_the_pieces():
    assert minutes({"pieces": [{"seconds": 90}, {"seconds": 30}]}) == 2.0
