"""The results page: its statistics against SciPy and by hand, and a page of a tiny study."""

import itertools
import json
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from typer.testing import CliRunner

from benchmarks.results import _kept as kept
from benchmarks.results import _run as running
from benchmarks.results import _samples as samples
from benchmarks.results._answers import standing
from benchmarks.results._checks import stuck
from benchmarks.results._figures import draw_figures
from benchmarks.results._page import minutes, page
from benchmarks.results._pieces import PIECES, Piece
from benchmarks.results._run import collect_choices, read_log, run_piece
from benchmarks.results._statistics import against_others, compare, estimate, rank, score
from benchmarks.results._tables import beside_the_paper, by_method, configurations, effort
from metaprior.cli._app import app
from metaprior.lab.environments import Table
from metaprior.lab.studies import (
    Job,
    keys_of,
    plan,
    specification_of,
    start_study,
    write_record,
)


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


def test_results_tell_where_an_entrant_stands():
    named = study().replace({"method": {"A": "FPacohMap", "P": "RankWeightedGP"}})
    assert standing(named, "FPacohMap") == {"Random Branin": "lowest"}
    assert standing(named, "C")["Random Branin"].startswith("tied (F-PACOH-MAP: +")
    # B is worse by 1, 1.1, 0.9 and 1: half of the interval is 3.18 * 0.0816 / 2.
    assert standing(named, "B") == {"Random Branin": "behind (F-PACOH-MAP: +1.00 ± 0.13)"}
    assert standing(named, "Learn") == {}


def test_results_tables_mark_leaders_and_fewer_seeds():
    named = study().replace({"method": {"A": "FPacohMap", "P": "RankWeightedGP"}})
    assert samples.partial_in(named) == ("RankWeightedGP",)
    lines = by_method({"t = 1": named}, "lower").splitlines()
    bold = {line.split("|")[1].strip() for line in lines if "**" in line}
    assert bold == {"F-PACOH-MAP", "C", "RWGP (2 seeds)"}


def test_samples_find_the_dataset_of_a_task():
    """`task` is a place in an order that each seed has anew."""
    for environment, seed in itertools.product(("glmnet", "lcbench"), (0, 7)):
        drawn = Table(environment).test_tasks(4, key=keys_of(seed).tasks)
        found = [kept.tested_dataset(environment, seed, task) for task in range(4)]
        assert found == np.asarray(drawn.data_id).tolist()
    assert kept.tested_dataset("glmnet", 0, 0) != kept.tested_dataset("glmnet", 1, 0)
    rows = pd.DataFrame({"environment": ["branin", "glmnet"], "seed": 3, "task": 2})
    units = kept.with_units(rows, lambda *where: 42)["unit"]
    assert units.tolist() == ["3/2", "42"]


def test_samples_of_cumulative_regret_leave_out_random_search():
    rows = pd.concat([frame("A", [1.0, 2.0]), frame("RandomSearch", [np.nan, np.nan])])
    rows = rows.rename(columns={"value": "inference_regret"})
    found = samples.cumulative(rows.assign(seed=0, unit="0"))
    assert found["method"].tolist() == ["A"] and found["value"].tolist() == [3.0]


def test_samples_of_pooled_errors_are_one_per_seed():
    rows = pd.concat([frame("A", [0.1, 0.2]).assign(task=task) for task in (0, 1)])
    rows = rows.rename(columns={"value": "calibration_error_pooled"}).assign(reading="uniform")
    found = samples.pooled_error(rows)
    assert found["value"].tolist() == [0.1, 0.2] and found["unit"].tolist() == ["0", "1"]


def test_results_stuck_runs_by_hand():
    """Regret 1 at first; one run ends at 0.5 and moved late, one did not, one is good."""
    ends = {"late": (0.6, 0.5), "still": (0.5, 0.5), "good": (0.0, 0.0)}
    rows = [
        {"method": method, "environment": "branin", "seed": 0, "task": 0, "step": step}
        | {"simple_regret": regret}
        for method, (half, last) in (ends | {"RandomSearch": (0.9, 0.8)}).items()
        for step, regret in ((1, 1.0), (50, half), (70, half), (100, last))
    ]
    shares = stuck(pd.DataFrame(rows))
    assert [shares[name, "branin"] for name in ends] == [0.0, 1.0, 0.0]


def test_results_tables_of_the_paper_and_of_configurations(tmp_path):
    printed = {"fixedgp": {"branin": (0.123, 0.004)}}
    both = pd.concat([frame("FixedGP", [0.2, 0.4]), frame("FixedGP", [0.2, 0.4], "lcbench")])
    text = beside_the_paper(both, printed, "lower")
    assert "| *0.123 ± 0.004* | – |" in text and "0.3 ± 1.3" in text
    (tmp_path / "branin").mkdir()
    chosen = {
        "format": "metaprior-configuration",
        "format_version": 1,
        "environment": "branin",
        "method": "FixedGP",
        "settings": {"lengthscale": 0.25, "variance": 1.0, "deep": True},
        "scores": {"simple_regret": 1e-5, "inference_regret": 0.0, "tied": 3.0},
        "searched": {"configurations": 7, "ranges": {"lengthscale": [], "deep": []}, "runs": 1200},
    }
    (tmp_path / "branin" / "FixedGP.json").write_text(json.dumps(chosen))
    assert "| Random Branin | 0.25 | True | – | 1e-05 | 0 | – | – | 3 |" in configurations(tmp_path)
    assert "| Fixed GP | 1 | 7 | 0 | 0 | 0 | 1,200 | 0 |" in effort(tmp_path)


def test_results_wall_time_is_the_sum_of_the_calls_on_a_device():
    log = [{"seconds": 90, "device": "gpu"}, {"seconds": 30, "device": "gpu"}]
    assert minutes([*log, {"seconds": 600, "device": "cpu"}], "gpu") == 2.0


# Pieces


@pytest.mark.parametrize("piece", PIECES.values(), ids=list(PIECES))
def test_every_piece_is_a_study_that_can_be_planned(piece):
    """Its own sizes, and the smoke ones; names of folders, methods and flags are right."""
    specification = specification_of(
        piece.kind, preset="full", methods=list(piece.methods), **piece.fields
    )
    assert len(plan(specification)) >= 1
    command = piece.command(Path("studies"), 14)
    assert command[:3] == ["metaprior", "study", piece.kind] and "--full" in command
    assert command[-1] == f"studies/{piece.name}"
    assert (("Learn" in piece.methods) == (piece.device == "cpu")) and "--smoke" in piece.command(
        Path("studies"), 1, smoke=True
    )
    flags = {option for option in command if option.startswith("--")}
    known = CliRunner().invoke(app, ["study", piece.kind, "--help"], env={"COLUMNS": "200"})
    assert all(f"{flag} " in known.stdout for flag in flags)


def test_pieces_cover_every_entrant_of_the_full_studies():
    for kind in ("offline", "lifelong", "supervised", "calibration", "search"):
        asked = {m for p in PIECES.values() if p.kind == kind for m in p.methods}
        assert asked >= set(specification_of(kind, preset="full")["methods"])


def test_choices_of_all_searches_are_collected(tmp_path):
    with pytest.raises(ValueError, match="run the pieces search-... first"):
        collect_choices(tmp_path, "chosen")
    for search, method in (("search-gp", "PacohMap"), ("search-rwgp", "RankWeightedGP")):
        path = tmp_path / search / "configurations" / "branin" / f"{method}.json"
        path.parent.mkdir(parents=True)
        path.write_text(method)
    folder = collect_choices(tmp_path, "chosen")
    assert sorted(path.name for path in folder.glob("*/*")) == [
        "PacohMap.json",
        "RankWeightedGP.json",
    ]


@pytest.mark.parametrize(("code", "expected"), [(0, True), (1, False)])
def test_run_piece_writes_down_how_it_went(tmp_path, monkeypatch, code, expected):
    monkeypatch.setattr(running, "_within", lambda command, environment, seconds: code)
    how = {"jobs": 2, "seconds": 5.0, "smoke": True, "machine": "a desk"}
    for _ in range(2):
        assert run_piece(PIECES["search-gp"], tmp_path, **how) == code
    log = read_log(tmp_path)
    # What is finished is not begun again.
    assert [entry["piece"] for entry in log] == ["search-gp"] * (1 if expected else 2)
    assert log[0]["finished"] == expected and log[0]["machine"] == "a desk"
    assert log[0]["command"].startswith("metaprior study search --smoke --methods FPacohMap,")


def test_run_piece_stops_at_the_limit(monkeypatch):
    """A process that never ends by itself, and ends when it is told to."""
    monkeypatch.setattr(running.sys, "executable", "sleep")
    popen = subprocess.Popen
    monkeypatch.setattr(
        running.subprocess, "Popen", lambda command, env: popen(["sleep", "60"], env=env)
    )
    assert running._within(["metaprior"], {}, 0.05) == running.UNFINISHED


# The page, from studies whose records are made up


METHODS = (
    "FPacohMap",
    "FPacohMap+refined",
    "FPacohMap+unrefined",
    "FPacohVI",
    "Learn",
    "FixedGP",
    "RandomSearch",
)
KINDS = {"offline": "run_offline", "lifelong": "run_lifelong"}
KINDS |= {"supervised": "run_supervised", "calibration": "run_calibration"}


def grid(**axes):
    """Columns with every combination of the values of the axes."""
    columns = np.meshgrid(*(np.asarray(values) for values in axes.values()), indexing="ij")
    return {name: column.ravel() for name, column in zip(axes, columns, strict=True)}


def made_up(kind, method, rng):
    """Records of one job: the later the better, and `learn` best."""
    worth = 1.0 if method == "Learn" else 2.0 + METHODS.index(method)
    if kind == "offline":
        columns = grid(seed=range(3), task=range(2), step=(1, 2, 20, 50, 100))
        regret = worth / columns["step"] * rng.uniform(0.9, 1.1, len(columns["step"]))
    elif kind == "lifelong":
        columns = grid(sequence=range(3), seed=[0], run=range(1, 11), step=(1, 2))
        regret = worth / columns["run"] * rng.uniform(0.9, 1.1, len(columns["run"]))
    elif kind == "supervised":
        columns = grid(seed=range(3), task=range(2))
        regret = worth * rng.uniform(0.9, 1.1, 6)
        names = ("log_likelihood", "log_likelihood_standardised")
        errors = {n: 0.1 * regret for n in ("calibration_error", "calibration_error_pooled")}
        return columns | {name: -regret for name in names} | errors
    else:
        columns = grid(seed=range(3), task=range(2), context=(1, 8), level=(0.0, 0.5, 1.0))
        once = worth * rng.uniform(0.9, 1.1, (12, 1)) * np.ones(3)
        measured = {"calibration_error": 0.1 * once.ravel(), "log_likelihood": -once.ravel()}
        return columns | measured | {"frequency": columns["level"]}
    inferred = np.full(len(regret), np.nan) if method == "RandomSearch" else 2 * regret
    return columns | {"simple_regret": regret, "inference_regret": inferred}


@pytest.fixture(scope="module")
def kept_folder(tmp_path_factory):
    """Kept records of made-up studies on a formula and a table, `learn` in pieces of its own."""
    studies, rng = tmp_path_factory.mktemp("studies"), np.random.default_rng(0)
    for kind, function in KINDS.items():
        for method in METHODS:
            if method == "RandomSearch" and kind in ("supervised", "calibration"):
                continue
            name = f"{kind}-learn" if method == "Learn" else kind
            folder = start_study(studies / name, {"kind": kind})
            for environment in ("branin", "glmnet"):
                for reading in ("collected", "uniform") if kind == "supervised" else (None,):
                    told = {"environment": environment, "method": method}
                    told |= {} if reading is None else {"reading": reading}
                    job = Job(f"metaprior.lab.studies:{function}", told)
                    write_record(folder, job, made_up(kind, method, rng))
    by_paper = start_study(studies / "offline-by-paper", {"kind": "offline"})
    told = {"environment": "branin", "method": "FPacohMap"}
    write_record(
        by_paper, Job("metaprior.lab.studies:run_offline", told), made_up("offline", "FixedGP", rng)
    )
    path = studies / "search-gp" / "configurations" / "branin" / "FPacohMap.json"
    path.parent.mkdir(parents=True)
    chosen = {"format": "metaprior-configuration", "format_version": 1, "scores": {}}
    chosen |= {"environment": "branin", "method": "FPacohMap", "settings": {"kappa": 0.125}}
    path.write_text(json.dumps(chosen | {"searched": {"ranges": {"kappa": []}, "runs": 77}}))
    log = {"piece": "offline", "command": "metaprior study offline", "seconds": 60, "device": "gpu"}
    log |= {"finished": True, "machine": "one GPU", "software": "JAX 1", "date": "May 2027"}
    running.write_log(studies, [log])
    records = tmp_path_factory.mktemp("records")
    paths = kept.keep(studies, records)
    assert all(path.stat().st_size < 100_000 for path in paths)
    return records


def test_kept_records_have_units_and_names(kept_folder):
    found = kept.read_kept(kept_folder)
    offline = found.offline
    assert set(offline["method"]) == {*METHODS, "FPacohMap+by-paper"}
    glmnet = offline[offline["environment"] == "glmnet"]
    assert glmnet["unit"].nunique() <= 6 and "/" not in "".join(glmnet["unit"])
    branin = offline[(offline["environment"] == "branin") & (offline["method"] == "Learn")]
    assert set(branin["unit"]) == {f"{s}/{t}" for s in range(3) for t in range(2)}
    # Of each run: the regret at its end, and the sum over its steps.
    assert found.lifelong.groupby(["environment", "method"]).size().eq(30).all()
    assert set(found.supervised["reading"]) == {"collected", "uniform"}
    with pytest.raises(ValueError, match="make it with `python -m benchmarks.results keep`"):
        kept.read_kept(kept_folder / "nowhere")
    with pytest.raises(ValueError, match="There is no piece of the full study in"):
        kept.keep(kept_folder, kept_folder)


def test_page_answers_first_and_has_everything_else(kept_folder):
    text = page(kept_folder, "images/results")
    assert text.startswith("# Results\n") and "took 1.0 minutes of one GPU" in text
    answers = text[text.index("## Answers") : text.index("## Reading the tables")]
    rows = {
        line.split("|")[1].strip(): line.split("|")[2:]
        for line in answers.splitlines()
        if "|" in line
    }
    cells = [cell.strip() for cell in rows["simple regret at t = 20, learn"]]
    assert cells[:3] == ["2 of 2 (target 7)", "lowest", "lowest"]
    cells = [cell.strip() for cell in rows["calibration error, F-PACOH-MAP"]]
    assert cells[0] == "0 of 2 (target 6)" and cells[1].startswith("behind (learn: +")
    assert "**F-PACOH-VI against F-PACOH-MAP**, calibration error: lower on none" in answers
    assert "**F-PACOH-MAP against F-PACOH-MAP, the paper's search**" in answers
    assert "**F-PACOH-MAP, refined against F-PACOH-MAP, not refined**" in answers
    assert "**learn, lifelong**: from the first run to runs 8 to 10, over 3 sequences" in answers
    for heading in ("Offline: inference regret", "Lifelong", "Calibration", "What was run"):
        assert f"\n## {heading}\n" in text
    assert "### Uniform points: calibration error of a seed" in text
    assert "| F-PACOH-MAP | 1 | 0 | 0 | 0 | 0 | 77 | 0 |" in text and "| 0.125 |" in text
    assert "*-1.854 ± 0.015*" in text and "nan" not in text.lower().replace("finance", "")


def test_page_has_the_notes_written_after_a_run(kept_folder):
    (kept_folder / "notes.md").write_text("## Why not\n\nBecause.\n")
    text = page(kept_folder, "images")
    assert text.index("## Answers") < text.index("Because.") < text.index("## Reading the tables")


def test_figures_are_drawn_from_kept_records(kept_folder, tmp_path):
    names = {path.name for path in draw_figures(kept_folder, tmp_path)}
    assert names == {
        *("offline-simple-regret.png", "offline-inference-regret.png"),
        *("lifelong-end-of-run-regret.png", "calibration.png"),
    }


def test_page_of_an_unfinished_study_has_what_there_is(kept_folder, tmp_path):
    """One entrant of one study."""
    found = kept.read_kept(kept_folder)
    for name, frame in found._asdict().items():
        some = frame[frame["method"] == "Learn"] if name == "offline" else frame[:0]
        some.to_parquet(tmp_path / f"{name}.parquet")
    text = page(tmp_path, "images")
    assert "simple regret at the end, learn" in text and "## Lifelong" not in text
    assert {path.name for path in draw_figures(tmp_path, tmp_path / "images")} == {
        *("offline-simple-regret.png", "offline-inference-regret.png")
    }


@pytest.mark.study
def test_pieces_run_from_search_to_page(tmp_path, monkeypatch):
    """Two smoke studies as processes, the second with what the first chose."""
    pieces = (
        Piece("search-baselines", "search", ("FixedGP",), uses=None),
        Piece("offline", "offline", ("FixedGP", "RandomSearch")),
    )
    studies, records = tmp_path / "studies", tmp_path / "records"
    how = {"jobs": 1, "seconds": 500.0, "smoke": True, "machine": "two cores"}
    assert [run_piece(piece, studies, **how) for piece in pieces] == [0, 0]
    [settings] = (studies / "chosen" / "glmnet").glob("*.json")
    offline = kept.read_records(studies / "offline")
    used = offline[(offline["method"] == "FixedGP") & (offline["environment"] == "glmnet")]
    chosen = json.loads(settings.read_text())["settings"]["lengthscale"]
    assert used["settings.lengthscale"].unique().tolist() == [chosen]
    kept.keep(studies, records)
    text = page(records, "images")
    assert "| Fixed GP |" in text and "two cores" in text and "Configurations chosen" in text
