"""`metaprior study`: every kind from end to end, going on after a kill, and bad input."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from metaprior.cli._study_progress import left, title
from metaprior.lab.studies import Job, read_records, read_study, run_jobs
from tests.commands import invoke

pytestmark = pytest.mark.usefixtures("no_cache")

TINY = ("--smoke", "--environments", "mixture1d", "--num-steps", 20)
PAST = ("--past-tasks", 4, "--past-steps", 4)
# By kind: what makes it tiny, and how many jobs that is.
KINDS = {
    "supervised": ((*PAST, "--methods", "FixedGP", "--seeds", 2), 4),
    "offline": (
        (*PAST, "--methods", "FixedGP,RandomSearch", "--tasks", 2, "--steps", 3, "--seeds", 1),
        2,
    ),
    "lifelong": (("--methods", "RandomSearch", "--runs", 2, "--steps", 3, "--seeds", 2), 2),
    "search": ((*PAST, "--methods", "FixedGP", "--draws", 2, "--steps", 3), 1),
    "calibration": (
        (*PAST, "--methods", "FixedGP", "--tasks", 2, "--points", 20, "--seeds", 1),
        1,
    ),
}


@pytest.mark.study
@pytest.mark.parametrize("kind", KINDS)
def test_study_of_every_kind_runs_and_resumes(kind, tmp_path):
    sizes, count = KINDS[kind]
    out = tmp_path / "study"
    done = invoke("study", kind, "--out", out, *TINY, *sizes, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["jobs_done"], found["jobs_skipped"], found["failures"]) == (count, 0, [])
    assert [row["environment"] for row in found["summary"]] == ["mixture1d"] * len(found["summary"])
    assert f"[{count}/{count}]" in done.stderr and read_study(out)["kind"] == kind
    assert all(Path(path).is_file() for path in found["written"])
    assert (out / "report" / "summary.json").is_file()
    if kind == "search":
        settings = json.loads((out / "configurations/mixture1d/FixedGP.json").read_text())
        assert settings["searched"]["configurations"] == 2
        assert settings["searched"]["criterion"] == "study"
        other = json.loads((out / "configurations-by-paper/mixture1d/FixedGP.json").read_text())
        assert other["searched"]["criterion"] == "paper"
    before = read_records(out)
    again = invoke("study", kind, "--out", out, *TINY, *sizes)
    assert again.exit_code == 0, again.stderr
    assert f"{count} of {count} jobs had finished before." in again.stderr
    assert "mixture1d" in again.stdout and "±" in again.stdout
    pd.testing.assert_frame_equal(read_records(out), before)
    drawn = invoke("study", "plot", out)
    assert drawn.exit_code == 0 and str(out / "report" / "summary.json") in drawn.stdout


@pytest.mark.study
def test_study_reads_the_configurations_of_a_search(tmp_path):
    folder = tmp_path / "configurations" / "mixture1d"
    folder.mkdir(parents=True)
    chosen = {"format": "metaprior-configuration", "format_version": 1}
    chosen |= {"environment": "mixture1d", "method": "FixedGP", "settings": {"lengthscale": 0.9}}
    (folder / "FixedGP.json").write_text(json.dumps(chosen))
    done = invoke(
        *("study", "supervised", "--out", tmp_path / "out", *TINY, *PAST, "--seeds", 1),
        *("--methods", "FixedGP", "--configurations", tmp_path, "--json"),
    )
    assert done.exit_code == 0, done.stderr
    records = read_records(tmp_path / "out")
    assert set(records["settings.lengthscale"]) == {0.9}
    assert set(records["configuration"]) == {"searched"}


def test_study_names_failed_jobs_with_their_reasons(tmp_path):
    done = invoke(
        *("study", "offline", "--out", tmp_path / "out", "--smoke", "--environments", "glmnet"),
        *("--methods", "RandomSearch", "--steps", 99999, "--seeds", 1),
    )
    assert done.exit_code == 1
    assert "Failed: RandomSearch on glmnet, seeds 0: ValueError: Task " in done.stderr
    assert "99999 are needed" in done.stderr and "Traceback" not in done.stderr


def test_study_names_damaged_records_and_makes_them_again(tmp_path):
    arguments = (
        *("study", "offline", "--out", tmp_path, *TINY, "--methods", "RandomSearch"),
        *("--steps", 3, "--seeds", 1),
    )
    assert invoke(*arguments).exit_code == 0
    (record,) = (tmp_path / "jobs").glob("*.parquet")
    whole = read_records(tmp_path)
    record.write_bytes(record.read_bytes()[:200])
    done = invoke(*arguments)
    assert done.exit_code == 0
    assert f"Note: {record} is not the record of a finished job" in done.stderr
    pd.testing.assert_frame_equal(read_records(tmp_path), whole)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("offline", "--smoke", "--full"), "A study is either --smoke or --full"),
        (("offline", "--methods", "nobody"), "There is no 'nobody' among the methods"),
        (("supervised", "--steps", "3"), "A study of kind supervised has no 'steps'"),
        (("offline", "--spec", "none.toml"), "none.toml: No such file or directory."),
        (("offline", "--configurations", "nowhere"), "There is no folder nowhere"),
        (("offline", "--smoke", "--jobs", "0"), "A study needs at least 1 worker, got 0"),
    ],
)
def test_study_refuses_bad_input_with_2_and_a_sentence(arguments, sentence, tmp_path):
    done = invoke("study", *arguments, "--out", tmp_path / "out")
    assert done.exit_code == 2, done.stderr
    assert done.stderr.startswith(f"Error: {sentence}") and "Traceback" not in done.stderr


def test_study_refuses_the_folder_of_another_study(tmp_path):
    arguments = ("--out", tmp_path, *TINY, "--methods", "RandomSearch", "--seeds", 1)
    assert invoke("study", "offline", *arguments, "--steps", 3).exit_code == 0
    done = invoke("study", "offline", *arguments, "--steps", 4)
    assert done.exit_code == 2
    assert "holds another study (its `steps` is 3, yours is 4)" in done.stderr


def test_study_plot_refuses_a_folder_without_a_study(tmp_path):
    done = invoke("study", "plot", tmp_path)
    assert done.exit_code == 2 and "There is no study in" in done.stderr


def test_study_progress_in_words():
    job = Job("a:b", {"environment": "branin", "method": "ABLR", "seeds": [0, 1, 2]})
    assert title(job) == "ABLR on branin, seeds 0 to 2"
    pair = Job("a:b", {"environment": "branin", "method": "ABLR", "pairs": [[0, 3]]})
    assert title(pair) == "ABLR on branin, pairs (0, 3)"
    words = [left(seconds) for seconds in (None, 0.2, 61.0, 600.0, 9000.0)]
    assert words == [
        "",
        "about 1 s left",
        "about 61 s left",
        "about 10 min left",
        "about 2.5 h left",
    ]


@pytest.mark.study
def test_study_killed_and_resumed_ends_with_the_same_bytes(tmp_path):
    """A real process, killed as soon as its first record is there."""
    arguments = [
        *("study", "offline", *map(str, TINY), *map(str, PAST), "--methods"),
        *("LearnedGP,FixedGP", "--tasks", "2", "--steps", "4", "--seeds", "3"),
    ]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    # The first process compiles, so that it is not done before it is killed.
    del environment["JAX_COMPILATION_CACHE_DIR"]

    def start(out: Path) -> subprocess.Popen:
        command = [sys.executable, "-m", "metaprior.cli", *arguments, "--out", str(out)]
        return subprocess.Popen(command, env=environment, stdout=-3, stderr=-3)

    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = start(killed)
    deadline = time.monotonic() + 300
    while not list(killed.glob("jobs/*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.returncode == -signal.SIGKILL
    first = {path.name: path.stat().st_mtime_ns for path in killed.glob("jobs/*.parquet")}
    assert 1 <= len(first) < 6
    assert start(killed).wait(300) == 0
    assert start(whole).wait(300) == 0
    assert len(read_records(whole)) == 2 * 3 * 2 * 4
    mine, theirs = (
        {path.name: path.read_bytes() for path in folder.glob("jobs/*.parquet")}
        for folder in (killed, whole)
    )
    assert mine == theirs and len(theirs) == 6
    for name, written in first.items():  # what had finished was not made again
        assert (killed / "jobs" / name).stat().st_mtime_ns == written


@pytest.mark.study
def test_study_in_processes_and_blocks_gives_the_same_records(tmp_path):
    arguments = (
        *("study", "offline", *TINY, "--methods", "RandomSearch", "--steps", 3, "--seeds", 3),
    )
    alone = invoke(*arguments, "--out", tmp_path / "alone")
    several = invoke(*arguments, "--out", tmp_path / "several", "--jobs", 2, "--block", 2)
    assert alone.exit_code == several.exit_code == 0, several.stderr
    mine, theirs = (
        read_records(tmp_path / name).sort_values(["seed", "task", "step"])
        for name in ("alone", "several")
    )
    assert mine["job"].nunique() == 3 and theirs["job"].nunique() == 2
    regret = theirs["simple_regret"].to_numpy()
    assert regret == pytest.approx(mine["simple_regret"].to_numpy(), abs=1e-9)


@pytest.mark.study
@pytest.mark.parametrize("kind", KINDS)
def test_study_smoke(kind, tmp_path):
    done = invoke("study", kind, "--smoke", "--out", tmp_path)
    assert done.exit_code == 0, done.stderr
    assert run_jobs([], tmp_path).exit_code == 0
    assert {"mixture1d", "glmnet"} <= set(read_records(tmp_path)["environment"])
