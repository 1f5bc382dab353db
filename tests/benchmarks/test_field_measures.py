"""Measures of the field benchmark, against cases worked by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.field._compared import LOSS, TIE, WIN, compare, wins_and_losses
from benchmarks.field._measures import measured, of_regret, pooled_calibration_error
from benchmarks.field._pools import Pool
from benchmarks.field._records import LEVELS, row_of
from benchmarks.field._show import text_of
from metaprior.metrics import calibration_error

NEW_TASK = Pool("7", np.linspace(0.0, 1.0, 5)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 6.0]))


def curve(*regret, length=50):
    """Regret that stays at its last value."""
    return np.array([*regret, *[regret[-1]] * (length - len(regret))])


def test_gap_is_from_the_median_to_the_best():
    assert NEW_TASK.gap == 4.0


def test_row_of_keeps_the_best_so_far_as_a_share_of_the_gap():
    row = row_of({"rows": [1, 3, 0, 4], "seconds": 0.5}, NEW_TASK)
    np.testing.assert_allclose(row["regret"], [1.25, 0.75, 0.75, 0.0])
    assert (row["task"], row["seconds"], row["asked"]) == ("7", 0.5, 0)


def test_row_of_counts_asked_points_inside_the_central_band():
    record = {"rows": [0, 1, 2, 3], "seconds": 0.0, "cdf": [0.02, 0.03, 0.97, 0.98]}
    row = row_of(record, NEW_TASK)
    assert (row["asked"], row["inside"]) == (4, 2)


def test_of_regret_counts_evaluations_to_a_target():
    found = of_regret(curve(0.5, 0.2, 0.05, 0.04, 0.009))
    assert (found["evaluations to 5%"], found["evaluations to 1%"]) == (3.0, 5.0)
    assert (found["solved 1%"], found["regret@3"], found["regret@50"]) == (1.0, 0.05, 0.009)


def test_of_regret_counts_one_more_than_all_evaluations_where_a_target_is_missed():
    found = of_regret(curve(0.5, 0.02))
    assert (found["evaluations to 1%"], found["solved 1%"]) == (51.0, 0.0)


@pytest.mark.parametrize(
    ("regret", "stalled"),
    [
        (curve(0.5, 0.02), 1.0),
        (curve(*[0.5] * 29, 0.02), 1.0),  # improved by query 30, the last before the last 20
        (curve(*[0.5] * 30, 0.02), 0.0),
        (curve(0.5, 0.009), 0.0),
    ],
)
def test_of_regret_calls_a_run_stalled_that_stands_still_above_one_per_cent(regret, stalled):
    assert of_regret(regret)["stalled"] == stalled


def test_pooled_calibration_error_agrees_with_the_metric_on_the_values_themselves():
    cdf = np.random.default_rng(0).beta(2.0, 1.0, (3, 64))
    counts = np.array([[np.sum(values <= level) for level in LEVELS] for values in cdf])
    assert pooled_calibration_error(counts) == pytest.approx(calibration_error(cdf))


def records(method, regrets, family="rpart", inside=45):
    """Two tasks of the same regret for each seed."""
    rows = []
    for seed, regret in enumerate(regrets):
        for task in ("1", "2"):
            rows.append(
                {
                    "family": family,
                    "regime": "gp",
                    "phase": "test",
                    "seed": seed,
                    "method": method,
                    "task": task,
                    "regret": curve(regret),
                    "seconds": 0.01,
                    "learning_seconds": 3.0,
                    "asked": 50,
                    "inside": inside,
                }
                | {f"at_most@{step}": [] for step in (1, 4, 8, 16, 32)}
                | {f"density@{step}": np.nan for step in (1, 4, 8, 16, 32)}
            )
    return pd.DataFrame(rows)


def test_measured_has_a_row_for_each_prior_and_method():
    found = measured(pd.concat([records("a", [0.1, 0.2]), records("b", [0.3])]))
    assert found["method"].tolist() == ["a", "a", "b"]
    assert found["regret@1"].tolist() == [0.1, 0.2, 0.3]
    assert found["coverage"].tolist() == [0.9] * 3


def test_compare_pairs_priors_and_agrees_with_scipy():
    ours, theirs = [0.1, 0.2, 0.4], [0.2, 0.35, 0.7, 0.9]
    found = compare(measured(pd.concat([records("learn", ours), records("b", theirs)])), "learn")
    mean, half = found["b"].columns["regret@10"]
    differences = np.subtract(theirs[:3], ours)
    low, high = stats.t.interval(0.95, 2, differences.mean(), stats.sem(differences))
    assert found["b"].priors == 3
    np.testing.assert_allclose([mean - half, mean + half], [low, high])


def test_wins_and_losses_follow_the_side_of_the_interval():
    better, worse = [0.001, 0.0011, 0.0012], [0.31, 0.32, 0.33]
    parts = [
        *(records("learn", better, f) for f in ("glmnet", "rpart")),
        records("b", worse, "glmnet"),
        records("b", better, "rpart"),
        records("learn", worse, "xgboost"),
        records("b", better, "xgboost"),
    ]
    tally = wins_and_losses(measured(pd.concat(parts)), "learn")["b", "regret@50"]
    assert (tally.wins, tally.ties, tally.losses) == (
        ("glmnet gp",),
        ("rpart gp",),
        ("xgboost gp",),
    )
    solved = wins_and_losses(measured(pd.concat(parts)), "learn")["b", "solved 1%"]
    assert solved.counts == "1 / 1 / 1"


def test_compare_of_a_single_prior_has_no_interval():
    found = compare(measured(pd.concat([records("learn", [0.1]), records("b", [0.2])])), "learn")
    assert found["b"].verdict("regret@1") is None
    assert found["b"].text("regret@1") == "+0.1000"


def test_verdicts_are_those_of_the_baseline():
    assert (WIN, TIE, LOSS) == ("wins", "ties", "loses")


def test_page_names_cells_where_coverage_is_off():
    parts = [records("learn", [0.1, 0.2]), records("learn", [0.1, 0.2], "xgboost", inside=40)]
    text = text_of(pd.concat(parts), {})
    assert (
        "- Coverage of `learn` is between 0.800 and 0.900; outside 0.90 to 0.98: "
        "xgboost gp (0.800)." in text
    )
    assert "- stalled of `learn` above 0.03: rpart gp (1.000), xgboost gp (1.000)." in text
