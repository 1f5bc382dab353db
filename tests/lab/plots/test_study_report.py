"""Reports say what the records say; expected numbers are worked out here, by hand or by scipy."""

import json
import struct
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.lab.plots import study_report
from metaprior.lab.plots._estimates import compare_with_others, curve, measured
from metaprior.lab.plots._lifelong_report import accumulated
from metaprior.lab.plots._offline_report import offline_report
from metaprior.lab.plots._search_report import SCORES, best_so_far
from metaprior.lab.plots._tables import markdown
from metaprior.lab.studies import (
    Job,
    StudyResults,
    read_results,
    start_study,
    write_record,
)

# Simple regret of four samples (two seeds, two tasks) after 1, 2 and 3 steps.
OURS = np.array([[[1.0, 0.5, 0.1], [2.0, 0.5, 0.2]], [[3.0, 0.5, 0.3], [6.0, 0.5, 0.2]]])


def half_width(values):
    values = np.ravel(values)
    return scipy.stats.sem(values) * scipy.stats.t.ppf(0.975, len(values) - 1)


def grid_of(**axes):
    """One row for each combination, as flat columns."""
    columns = np.meshgrid(*axes.values(), indexing="ij")
    return {name: column.ravel() for name, column in zip(axes, columns, strict=True)}


def write_study(folder, kind, records):
    """A study whose jobs returned `records`, by environment and method."""
    start_study(folder, {"kind": kind})
    for (environment, method), columns in records.items():
        job = Job("tests:job", {"environment": environment, "method": method, "settings": {}})
        write_record(folder, job, columns)
    return folder


def offline_columns(regret, inference=None):
    axes = [range(size) for size in regret.shape[:2]]
    steps = range(1, regret.shape[2] + 1)
    inference = regret if inference is None else inference
    return {
        **grid_of(seed=axes[0], task=axes[1], step=steps),
        "simple_regret": regret.ravel(),
        "inference_regret": inference.ravel(),
    }


def lines_of(path):
    """The rows of all tables in a Markdown file, by the text of the first cell."""
    rows = [
        [cell.strip() for cell in line[1:-1].split("|")]
        for line in path.read_text().splitlines()
        if line.startswith("| ") and not line.startswith("| :--")
    ]
    return {row[0]: row[1:] for row in rows}


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    nothing = np.full(OURS.shape, np.nan)
    records = {
        ("branin", "FPacohMap"): offline_columns(OURS),
        # Worse by the same amount everywhere, and then better by the same amount.
        ("branin", "FixedGP"): offline_columns(OURS + np.array([0.0, 0.5, 0.4])),
        ("branin", "RandomSearch"): offline_columns(OURS + 1.0, nothing),
        ("glmnet", "FPacohMap"): offline_columns(OURS),
        ("glmnet", "FixedGP"): offline_columns(OURS * np.array([1.0, 1.0, 0.0])),
    }
    folder = write_study(tmp_path_factory.mktemp("offline"), "offline", records)
    return folder, study_report(folder)


def test_offline_report_writes_every_file_it_names(offline):
    folder, paths = offline
    names = {"simple-regret", "inference-regret"}
    expected = {f"{name}.{suffix}" for name in names for suffix in ("png", "svg", "md", "tex")}
    expected |= {f"{name}-comparison.{suffix}" for name in names for suffix in ("md", "tex")}
    assert {path.name for path in paths} == expected | {"summary.json"}
    assert all(path.parent == folder / "report" and path.stat().st_size > 0 for path in paths)


def test_offline_figures_are_for_print(offline):
    folder, _ = offline
    header = (folder / "report" / "simple-regret.png").read_bytes()[:24]
    width, _ = struct.unpack(">II", header[16:24])
    assert width == 980  # two panels: a column and a half, 4.9 inches, at 200 dots an inch
    svg = ElementTree.parse(folder / "report" / "simple-regret.svg").getroot()
    assert svg.tag.endswith("svg")


def test_offline_summary_is_worked_out_by_hand(offline):
    found = json.loads((offline[0] / "report" / "summary.json").read_text())
    first = found["simple_regret"]["environments"]["branin"]["1"]["methods"]["FPacohMap"]
    assert first["mean"] == 3.0 and first["count"] == 4
    # 1, 2, 3 and 6: standard deviation sqrt(14 / 3); Student's quantile of 3 degrees is 3.18245.
    assert first["half_width_95"] == pytest.approx(3.18245 * np.sqrt(14 / 3) / 2, rel=1e-5)
    last = found["simple_regret"]["environments"]["branin"]["3"]["methods"]["FPacohMap"]
    assert last["mean"] == pytest.approx(0.2)
    assert last["half_width_95"] == pytest.approx(half_width(OURS[..., 2]))
    assert found["simple_regret"]["environments"]["branin"]["3"]["lowest"] == "FPacohMap"
    assert found["simple_regret"]["environments"]["glmnet"]["3"]["lowest"] == "FixedGP"
    assert found["kind"] == "offline" and found["specification"] == {"kind": "offline"}


def test_offline_table_shows_means_intervals_and_the_lowest(offline):
    text = (offline[0] / "report" / "simple-regret.md").read_text()
    branin, glmnet = text.split("**Simple regret on GLMNET**")
    assert "|  | t = 1 | t = 3 |" in branin
    assert "| F-PACOH-MAP | **3.0 ± 3.4** | **0.20 ± 0.13** |" in branin
    assert "| Random search | 4.0 ± 3.4 | 1.20 ± 0.13 |" in branin
    assert "| F-PACOH-MAP | **3.0 ± 3.4** | 0.20 ± 0.13 |" in glmnet
    assert "| Fixed GP | **3.0 ± 3.4** | **0 ± 0** |" in glmnet


def test_offline_report_compares_in_pairs(offline):
    """The intervals of the two methods overlap widely; those of their differences do not."""
    rows = lines_of(offline[0] / "report" / "simple-regret-comparison.md")
    assert rows["Fixed GP"] == ["win", "loss", "1/0/1"]
    assert rows["Random search"] == ["win", "–", "1/0/0"]


def test_offline_report_has_no_inference_regret_of_random_search(offline):
    rows = lines_of(offline[0] / "report" / "inference-regret.md")
    assert "Random search" not in rows and "Fixed GP" in rows


def test_study_report_is_the_same_twice(offline):
    folder, paths = offline
    before = {path: path.read_bytes() for path in paths}
    assert study_report(folder) == paths
    assert {path: path.read_bytes() for path in paths} == before


def test_study_report_leaves_rc_params_unchanged(tmp_path):
    folder = write_study(tmp_path, "offline", {("rpart", "ABLR"): offline_columns(OURS)})
    before = dict(matplotlib.rcParams)
    study_report(folder)
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ({("mixture1d", "FPacohMap"): OURS[:1, :1]}, "| F-PACOH-MAP | 1.00 | 0.100 |"),
        ({("mixture1d", "FPacohMap"): OURS[:1, :1, :1]}, "| F-PACOH-MAP | 1.00 |"),
        ({("a lab", "their method"): 0 * OURS}, "| their method | 0 ± 0 | 0 ± 0 |"),
        ({("branin", "FPacohMap"): np.where(OURS == 6, np.nan, OURS)}, "| – | 0.20 ± 0.13 |"),
    ],
    ids=["one seed and task", "one step", "strangers without regret", "a number is missing"],
)
def test_study_report_of_little_data(tmp_path, records, expected):
    columns = {key: offline_columns(regret) for key, regret in records.items()}
    paths = study_report(write_study(tmp_path, "offline", columns))
    assert expected in next(path for path in paths if path.name == "simple-regret.md").read_text()
    assert any(path.suffix == ".png" for path in paths)


# Regret in round numbers with many ties, so that orders matter if anything does.
NUMBERS = st.lists(st.integers(-3, 300).map(lambda n: n / 7), min_size=24, max_size=24)


@pytest.mark.slow
@settings(deadline=None, max_examples=12)
@given(numbers=NUMBERS, seed=st.integers(0, 2**31 - 1))
def test_offline_report_ignores_the_order_of_records(numbers, seed):
    rows = pandas.DataFrame(
        {
            "environment": "branin",
            "method": ["FPacohMap"] * 12 + ["ABLR"] * 12,
            **grid_of(entrant=range(2), seed=range(3), task=range(2), step=(1, 20)),
            "simple_regret": numbers,
            "inference_regret": numbers,
        }
    )
    one, other = (
        offline_report(StudyResults(Path(), {"kind": "offline"}, each))
        for each in (rows, rows.sample(frac=1.0, random_state=seed))
    )
    assert one.summary == other.summary
    assert one.tables == other.tables
    drawn = [
        [
            np.asarray(line.get_xydata())
            for ax in report.figures["simple-regret"].axes
            for line in ax.lines
        ]
        for report in (one, other)
    ]
    for line, same in zip(*drawn, strict=True):
        np.testing.assert_array_equal(line, same)


@settings(deadline=None, max_examples=50)
@given(numbers=st.lists(st.floats(-1e3, 1e3), min_size=8, max_size=8))
def test_curve_is_means_with_students_intervals(numbers):
    values = np.array(numbers).reshape(4, 2)
    rows = pandas.DataFrame({**grid_of(task=range(4), step=(1, 2)), "r": values.ravel()})
    found = curve(rows, "step", "r")
    np.testing.assert_allclose(found.mean, values.mean(axis=0), atol=1e-9)
    expected = [half_width(column) for column in values.T]
    np.testing.assert_allclose(found.half_width, expected, atol=1e-9)


def test_compare_with_others_uses_only_common_samples():
    rows = pandas.DataFrame(
        {
            "environment": "rpart",
            "method": ["FPacohMap", "FPacohMap", "FPacohMap", "ABLR", "ABLR", "ABLR"],
            "seed": [0, 1, 2, 0, 1, 9],
            "r": [1.0, 2.0, 99.0, 1.5, 2.7, -99.0],
        }
    )
    found = compare_with_others(rows, "r", ["seed"], "lower")["ABLR"]["rpart"]
    assert found.verdict == "tie"  # 0.5 and 0.7: two samples are too few
    assert found.advantage.mean == pytest.approx(0.6)
    assert found.advantage.half_width == pytest.approx(half_width([0.5, 0.7]))
    higher = compare_with_others(rows, "r", ["seed"], "higher")["ABLR"]["rpart"]
    assert higher.advantage.mean == pytest.approx(-0.6)


def test_measured_keeps_methods_that_have_a_number_somewhere():
    rows = pandas.DataFrame(
        {"environment": "a", "method": ["x", "x", "y"], "r": [np.nan, 1.0, np.nan]}
    )
    assert list(measured(rows, "r")["method"]) == ["x", "x"]


# Two sequences of three runs of two steps; the method learns, so that regret halves each run.
LIFELONG = np.array([1.0, 2.0])[:, None, None] * np.array([1.0, 0.5, 0.25])[:, None] * [[1.0, 0.4]]


def lifelong_columns(regret, inference=None):
    return {
        **grid_of(sequence=range(2), seed=[0], run=(1, 2, 3), step=(1, 2)),
        "simple_regret": regret.ravel(),
        "inference_regret": (2 * regret if inference is None else inference).ravel(),
    }


def test_lifelong_report_by_hand(tmp_path):
    same = np.broadcast_to(LIFELONG[:, :1], LIFELONG.shape)
    records = {
        ("branin", "FPacohMap"): lifelong_columns(LIFELONG),
        ("branin", "FixedGP"): lifelong_columns(same),
        ("branin", "RandomSearch"): lifelong_columns(same, np.full(same.shape, np.nan)),
    }
    paths = study_report(write_study(tmp_path, "lifelong", records))
    names = {path.name for path in paths}
    assert {"end-of-run-regret.png", "cumulative-inference-regret.svg"} <= names
    found = json.loads((tmp_path / "report" / "summary.json").read_text())
    ends = found["end_of_run_regret"]["branin"]["FPacohMap"]
    assert [ends["runs"][run]["mean"] for run in "123"] == pytest.approx([0.6, 0.3, 0.15])
    assert ends["first_minus_last"]["mean"] == pytest.approx(0.45)
    # Two samples, 0.3 and 0.6: their spread is 0.15 sqrt(2), their quantile 12.7062.
    assert ends["first_minus_last"]["half_width_95"] == pytest.approx(12.7062 * 0.15, rel=1e-4)
    totals = found["cumulative_inference_regret"]["branin"]
    # Twice (1 + 0.4)(1 + 0.5 + 0.25), averaged over sequences that differ by a factor of two.
    assert totals["FPacohMap"]["mean"] == pytest.approx(2 * 1.4 * 1.75 * 1.5)
    assert "RandomSearch" not in totals
    assert lines_of(tmp_path / "report" / "cumulative-inference-regret.md").keys() == {
        "",
        "F-PACOH-MAP",
        "Fixed GP",
    }


def test_lifelong_report_accumulates_regret_over_runs_in_order():
    frame = pandas.DataFrame(lifelong_columns(LIFELONG))
    rows = frame.assign(environment="a", method="b").sample(frac=1.0, random_state=0)
    first = accumulated(rows)[lambda rows: rows["sequence"] == 0]
    assert list(first["total_step"]) == [1, 2, 3, 4, 5, 6]
    steps = [2.0, 0.8, 1.0, 0.4, 0.5, 0.2]
    np.testing.assert_allclose(first["cumulative_inference_regret"], np.cumsum(steps))


def test_supervised_report_stands_beside_the_paper(tmp_path):
    likelihood = np.array([1.0, 2.0, 3.0, 6.0])
    records = {
        (environment, method): {
            **grid_of(seed=range(2), task=range(2)),
            "log_likelihood": likelihood - worse,
            "calibration_error": 0.1 + 0.01 * likelihood + worse,
        }
        for environment in ("xgboost", "branin", "mixture1d")
        for method, worse in (("FPacohMap", 0.0), ("RankWeightedGP", 1.0), ("FixedGP", 2.0))
    }
    study_report(write_study(tmp_path, "supervised", records))
    rows = lines_of(tmp_path / "report" / "log-likelihood.md")
    assert rows[""] == ["Random Mixture 1d", "Random Branin", "XGBoost"]
    assert rows["F-PACOH-MAP"] == ["**3.000 ± 3.437**"] * 3
    assert rows["F-PACOH-MAP, paper"] == ["–", "**-1.854 ± 0.015**", "1.051 ± 0.079"]
    assert rows["Fixed GP, paper"] == ["–", "-3.027 ± 0.000", "0.872 ± 0.000"]
    assert "RWGP" in rows and "RWGP, paper" not in rows
    errors = lines_of(tmp_path / "report" / "calibration-error.md")
    assert errors["F-PACOH-MAP"] == ["**0.130 ± 0.034**"] * 3
    assert errors["F-PACOH-MAP, paper"][2] == "**0.077 ± 0.001**"
    assert "NeurIPS 2021" in (tmp_path / "report" / "log-likelihood.tex").read_text()
    won = lines_of(tmp_path / "report" / "calibration-error-comparison.md")
    assert won["Fixed GP"] == ["win", "win", "win", "3/0/0"]


def test_supervised_report_has_tables_of_each_reading(tmp_path):
    axes = grid_of(reading=["collected", "uniform"], seed=[0], task=range(2))
    better = np.where(axes["reading"] == "uniform", 2.0, 1.0)
    columns = {**axes, "log_likelihood": better, "calibration_error": 0.1 * better}
    study_report(write_study(tmp_path, "supervised", {("branin", "FPacohMap"): columns}))
    for name, mean in (("log-likelihood", "1.000"), ("log-likelihood-uniform", "2.000")):
        [cell] = lines_of(tmp_path / "report" / f"{name}.md")["F-PACOH-MAP"]
        assert cell.startswith(mean)


def test_calibration_report_by_hand(tmp_path):
    levels = np.array([0.0, 0.5, 1.0])
    frequency = np.array([[0.0, 0.6, 1.0], [0.0, 0.8, 1.0]])  # of two tasks
    axes = grid_of(seed=[0], task=range(2), context=(1, 8), level=levels)
    error = np.array([0.1, 0.3])
    records = {
        ("mixture1d", method): {
            **axes,
            "frequency": np.repeat(frequency[:, None], 2, axis=1).ravel(),
            "calibration_error": np.repeat(error + worse, 6),
        }
        for method, worse in (("FPacohMap", 0.0), ("PacohMap", 0.1))
    }
    paths = study_report(write_study(tmp_path, "calibration", records))
    assert {"calibration.png", "calibration.svg"} <= {path.name for path in paths}
    rows = lines_of(tmp_path / "report" / "calibration-error.md")
    assert rows[""] == ["1 point", "8 points"]
    assert half_width(error) == pytest.approx(1.27062, rel=1e-5)
    assert rows["F-PACOH-MAP"] == ["**0.2 ± 1.3**"] * 2
    found = json.loads((tmp_path / "report" / "summary.json").read_text())
    # One calibration error for each task, however many levels there are.
    assert found["calibration_error"]["mixture1d"]["8"]["methods"]["PacohMap"]["count"] == 2


def test_search_report_by_hand(tmp_path):
    """Twice as long a training was twice as bad."""
    scores = np.array([[3.0, 5.0], [np.nan, np.nan], [1.0, 2.0], [2.0, 9.0]])
    scores = np.stack([scores, 2 * scores], axis=1).ravel()
    columns = grid_of(configuration=range(4), num_steps=(10, 20), seed=[1000], task=range(2))
    columns |= dict.fromkeys(SCORES, scores)
    curve = best_so_far(pandas.DataFrame(columns), "simple_regret")
    np.testing.assert_array_equal(curve.x, [1, 2, 3, 4])
    np.testing.assert_array_equal(curve.mean, [4.0, 4.0, 1.5, 1.5])
    folder = write_study(tmp_path, "search", {("branin", "FPacohMap"): columns})
    path = folder / "configurations" / "branin" / "FPacohMap.json"
    path.parent.mkdir(parents=True)
    chosen = {
        **{"format": "metaprior-configuration", "format_version": 1},
        **{"environment": "branin", "method": "FPacohMap"},
        "settings": {"kappa": 0.012345, "num_steps": 4000, "not_searched": 7},
        "scores": {"configuration": 2, "simple_regret": 1.5, "average_rank": 1.0},
        "searched": {"configurations": 4, "diverged": 1, "ranges": {"kappa": [], "num_steps": []}},
    }
    path.write_text(json.dumps(chosen))
    names = {path.name for path in study_report(folder)}
    assert {"best-simple-regret-so-far.png", "configurations.tex"} <= names
    rows = lines_of(folder / "report" / "configurations.md")
    expected = ["1.00", "–", "1.50", "–", "–", "–", "4 (1)", "kappa = 0.0123, num_steps = 4000"]
    assert rows["F-PACOH-MAP"] == expected


def test_search_report_of_an_unfinished_search_is_a_figure(tmp_path):
    columns = {
        **grid_of(configuration=range(2), num_steps=[10], seed=[1000], task=[0]),
        **dict.fromkeys(SCORES, np.full(2, np.nan)),
        "simple_regret": np.array([0.5, 0.4]),
    }
    paths = study_report(write_study(tmp_path, "search", {("rpart", "ABLR"): columns}))
    assert [path.name for path in paths] == [
        "best-simple-regret-so-far.png",
        "best-simple-regret-so-far.svg",
        "summary.json",
    ]


def test_study_report_refuses_bad_folders_in_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"no study in .*: study.json is missing"):
        study_report(tmp_path / "nowhere")
    start_study(tmp_path / "new", {"kind": "offline"})
    with pytest.raises(ValueError, match="No job of a study has finished in"):
        study_report(tmp_path / "new")
    columns = {"seed": np.arange(2), "loss": np.zeros(2)}
    strange = write_study(tmp_path / "strange", "survey", {("branin", "ABLR"): columns})
    with pytest.raises(ValueError, match="of the kind 'survey', which has no report; .*offline"):
        study_report(strange)
    poor = write_study(tmp_path / "poor", "supervised", {("branin", "ABLR"): columns})
    with pytest.raises(ValueError, match="supervised study lack the columns calibration_error"):
        study_report(poor)
    (tmp_path / "poor" / "study.json").write_text("{")
    with pytest.raises(ValueError, match="is not valid JSON"):
        study_report(poor)
    (tmp_path / "poor" / "study.json").write_text('{"format": "something else"}')
    with pytest.raises(ValueError, match="was not written by a study"):
        study_report(poor)


def test_study_report_leaves_out_a_damaged_record_with_a_warning(tmp_path):
    records = {("branin", method): offline_columns(OURS) for method in ("ABLR", "FPacohMap")}
    folder = write_study(tmp_path, "offline", records)
    path = sorted((folder / "jobs").glob("*.parquet"))[0]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(UserWarning, match=f"{path.name} is not the record of a finished job"):
        results = read_results(folder)
    assert results.records["method"].nunique() == 1


def test_study_report_latex_has_the_numbers_of_markdown(offline):
    text = (offline[0] / "report" / "simple-regret.tex").read_text()
    assert r"F-PACOH-MAP & $\mathbf{3.0 \pm 3.4}$ & $\mathbf{0.20 \pm 0.13}$ \\" in text
    assert text.count(r"\begin{tabular}{lrr}") == text.count(r"\end{tabular}") == 2
    assert r"\label{tab:simple-regret-branin}" in text and r"95 \% interval" in text


def test_study_report_writes_the_markdown_of_its_tables(offline):
    report = offline_report(read_results(offline[0]))
    text = "\n".join(markdown(table) for table in report.tables["simple-regret"])
    assert (offline[0] / "report" / "simple-regret.md").read_text() == text
