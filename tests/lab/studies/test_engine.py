"""The engine with real processes: skipping, failing, being killed, and a real Dask cluster."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import psutil
import pytest

from metaprior.lab.studies._engine import JobsProgress, run_jobs, seconds_left
from metaprior.lab.studies._folder import RecordWarning, read_records
from metaprior.lab.studies._jobs import Job
from tests.lab.studies.engine_jobs import HERE, NOTES, executions, study

ROOT = Path(__file__).parents[3]
PATIENCE = 90  # seconds, on a busy machine


@pytest.fixture(autouse=True)
def notes(tmp_path, monkeypatch):
    folder = tmp_path / "notes"
    folder.mkdir()
    monkeypatch.setenv(NOTES, str(folder))
    return folder


@pytest.fixture
def undisturbed(tmp_path, monkeypatch):
    """The records of a study that nothing happened to, made one job after the other."""

    def make(jobs):
        calm = tmp_path / "calm"
        calm.mkdir()
        for job in jobs:  # nothing hangs here
            (calm / f"held-{job.specification['seed']}").touch()
        with monkeypatch.context() as patch:
            patch.setenv(NOTES, str(calm))
            run_jobs(jobs, calm / "study")
        return calm / "study"

    return make


def assert_same_records(folder, other):
    pd.testing.assert_frame_equal(read_records(folder), read_records(other), check_exact=True)
    files, others = (sorted((f / "jobs").glob("*.parquet")) for f in (folder, other))
    assert [file.name for file in files] == [file.name for file in others]
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in others]


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)
    return found


def says_its_process(path):
    """Whether a job that hangs has left its note."""
    return path.exists() and path.read_text() != ""


def is_alive(pid):
    """Whether a process runs; one that has ended and that nobody has asked about does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextmanager
def program(*command, **options):
    """A process that does not outlive the test."""
    places = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def engine(folder, **options):
    """An engine in a process of its own, with two workers and 8 jobs, of which two hang."""
    return program("-m", "tests.lab.studies.engine_jobs", str(folder), "2", **options)


def test_engine_skips_finished_jobs(tmp_path, notes):
    jobs = study(4)
    assert run_jobs(jobs[:2], tmp_path / "s") == (2, 0, ())
    report = run_jobs(jobs, tmp_path / "s")
    assert (report.done, report.skipped, report.exit_code) == (2, 2, 0)
    assert run_jobs(jobs, tmp_path / "s") == (0, 4, ())
    assert executions(notes) == [0, 1, 2, 3]


def test_engine_runs_equal_jobs_once(tmp_path, notes):
    job = study(1)[0]
    again = Job(job.kind, dict(reversed(job.specification.items())))
    assert run_jobs([job, again, job], tmp_path).done == 1
    assert executions(notes) == [0]


def test_engine_names_a_damaged_record_and_makes_it_again(tmp_path, notes, undisturbed):
    jobs = study(3)
    run_jobs(jobs, tmp_path / "s")
    path = tmp_path / "s" / "jobs" / f"{jobs[1].name}.parquet"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(RecordWarning, match=f"{path} is not the record"):
        report = run_jobs(jobs, tmp_path / "s")
    assert (report.done, report.skipped) == (1, 2)
    assert executions(notes) == [0, 1, 2, 1]
    assert_same_records(tmp_path / "s", undisturbed(jobs))


FAILING = {
    "refuse": "ArithmeticError: the seed 7 is not to my taste",
    "leave": "SystemExit: enough",
    "unequal": "ValueError: .* shapes a: .3., b: .4.; return",
    "clash": ".*returned the columns .'seed'.",
    "imaginary": ".*columns that Parquet cannot hold",
    "no_such_function": "ValueError: There is no .*no_such_function to run here",
}


@pytest.mark.parametrize("function", FAILING)
def test_engine_goes_on_after_a_failing_job(tmp_path, notes, function):
    bad = Job(f"{HERE}:{function}", {"seed": 7})
    report = run_jobs([bad, *study(2)], tmp_path)
    assert (report.done, report.exit_code) == (2, 1)
    [failure] = report.failures
    assert failure.job == bad
    assert "\n" not in failure.reason
    assert re.match(FAILING[function], failure.reason), failure.reason
    assert bad.text in (tmp_path / "jobs" / f"{bad.name}.error.txt").read_text()
    assert run_jobs([bad, *study(2)], tmp_path).skipped == 2  # and it has run again
    assert set(read_records(tmp_path)["seed"]) == {0, 1}


def test_engine_keeps_the_traceback_until_the_job_succeeds(tmp_path, monkeypatch):
    job = study(1)[0]
    story = tmp_path / "jobs" / f"{job.name}.error.txt"
    with monkeypatch.context() as patch:
        patch.delenv(NOTES)
        assert "KeyError" in run_jobs([job], tmp_path).failures[0].reason
    assert "in measure" in story.read_text()
    assert run_jobs([job], tmp_path).exit_code == 0
    assert not story.exists()


def test_engine_progress_counts_and_estimates(tmp_path):
    jobs = [*study(3), Job(f"{HERE}:refuse", {"seed": 7})]
    run_jobs(jobs[:1], tmp_path)
    told: list[JobsProgress] = []
    run_jobs(jobs, tmp_path, on_progress=told.append)
    assert [(s.done, s.failed, s.current) for s in told] == [
        (0, 0, None),
        (0, 0, jobs[1]),
        (1, 0, jobs[1]),
        (1, 0, jobs[2]),
        (2, 0, jobs[2]),
        (2, 0, jobs[3]),
        (2, 1, jobs[3]),
    ]
    assert {(s.skipped, s.total) for s in told} == {(1, 4)}
    assert [s.seconds_left is None for s in told] == [True, True, False, False, False, False, False]
    assert told[-1].seconds_left == 0.0


def test_seconds_left_goes_by_the_pace_so_far():
    assert seconds_left(30.0, 3, 7) == 70.0
    assert seconds_left(30.0, 3, 0) == 0.0
    assert seconds_left(30.0, 0, 10) is None


def test_engine_refuses_a_folder_in_use(tmp_path):
    refusals = []

    def intrude(standing):
        if not refusals:
            with pytest.raises(ValueError, match="already running in") as caught:
                run_jobs(study(1), tmp_path)
            refusals.append(str(caught.value))

    assert run_jobs(study(1), tmp_path, on_progress=intrude).done == 1
    assert f"process {os.getpid()} on {socket.gethostname()}, since 20" in refusals[0]
    assert run_jobs(study(1), tmp_path).skipped == 1  # the lock has ended


def test_engine_stops_when_a_record_cannot_be_written(tmp_path, monkeypatch):
    """A full disk is not the failure of a job: the next one would fail the same way."""

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(ValueError, match="cannot be written .no space left"):
        run_jobs(study(3), tmp_path / "study")
    assert not list((tmp_path / "study").rglob("*.error.txt"))


def test_engine_ignores_the_lock_of_a_dead_process(tmp_path):
    (tmp_path / ".lock").write_text(f"process {os.getpid()} on here, since yesterday\n")
    assert run_jobs(study(1), tmp_path).done == 1


def test_engine_keeps_what_has_finished_when_interrupted(tmp_path, notes):
    jobs = study(4)

    def interrupt(standing):
        if standing.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, tmp_path, on_progress=interrupt)
    assert run_jobs(jobs, tmp_path) == (2, 2, ())
    assert executions(notes) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "at least 1 worker, got 0"),
        ({"workers": 2, "dask": "tcp://127.0.0.1:1"}, "not both"),
    ],
)
def test_engine_refuses_impossible_requests(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run_jobs(study(1), tmp_path, **options)


def test_engine_refuses_a_bad_specification_before_anything_runs(tmp_path, notes):
    with pytest.raises(ValueError, match="has the entry 'job'"):
        run_jobs([*study(1), Job(f"{HERE}:measure", {"seed": 1, "job": 1})], tmp_path)
    assert executions(notes) == []


@pytest.mark.slow
def test_engine_processes_have_one_thread_survive_a_crash_and_end_with_it(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = dict(os.environ), signal.getsignal(signal.SIGINT)
    crash = Job(f"{HERE}:crash", {"seed": 7})
    born = [Job(f"{HERE}:surroundings", {"seed": seed}) for seed in range(3)]
    report = run_jobs([crash, *born, Job(f"{HERE}:refuse", {"seed": 7})], tmp_path, workers=2)
    assert report.done == 3
    reasons = {failure.job.kind: failure.reason for failure in report.failures}
    assert reasons == {
        f"{HERE}:crash": "the worker process ended by signal SIGKILL while it ran the job",
        f"{HERE}:refuse": "ArithmeticError: the seed 7 is not to my taste",
    }
    records = read_records(tmp_path)
    assert records["threads"].tolist() == ["1"] * 3
    assert records["deaf"].all()
    assert os.getpid() not in set(records["process"])
    assert not any(is_alive(pid) for pid in records["process"])
    assert (dict(os.environ), signal.getsignal(signal.SIGINT)) == before


def test_engine_ends_everything_at_ctrl_c(tmp_path, notes):
    """A terminal sends the signal to the engine and to its workers alike."""
    folder, held = tmp_path / "s", [notes / "held-5", notes / "held-6"]
    output = tmp_path / "stderr"
    with output.open("wb") as file, engine(folder, stderr=file, start_new_session=True) as process:
        wait_until(lambda: all(map(says_its_process, held)), "both workers hang")
        os.killpg(process.pid, signal.SIGINT)
        process.wait(PATIENCE)
    assert not any(is_alive(int(path.read_text())) for path in held)
    told = output.read_text()
    assert told.count("Traceback") == told.count("KeyboardInterrupt") == 1  # the workers are silent


def test_engine_killed_and_started_again_gives_the_same_records(tmp_path, notes, undisturbed):
    """The program has two processes for 8 jobs; they hang in the sixth and in the seventh."""
    folder, held = tmp_path / "s", [notes / "held-5", notes / "held-6"]
    with engine(folder) as process:
        wait_until(lambda: all(map(says_its_process, held)), "both workers hang")
        wait_until(lambda: len(list(folder.glob("jobs/*.parquet"))) == 5, "five jobs finished")
        with pytest.raises(ValueError, match=f"already running in .*process {process.pid} on"):
            run_jobs(study(1), folder)
        process.send_signal(signal.SIGKILL)
        process.wait()
    orphans = [int(path.read_text()) for path in held]
    wait_until(lambda: not any(is_alive(pid) for pid in orphans), "the workers left as well")

    jobs = study(8, hold=(5, 6))
    assert run_jobs(jobs, folder) == (3, 5, ())
    assert sorted(executions(notes)) == [0, 1, 2, 3, 4, 5, 5, 6, 6, 7]
    assert_same_records(folder, undisturbed(jobs))


def test_engine_needs_no_cluster_for_a_finished_study(tmp_path):
    run_jobs(study(1), tmp_path)
    assert run_jobs(study(1), tmp_path, dask="tcp://127.0.0.1:1").skipped == 1


def test_engine_names_a_missing_cluster(tmp_path, monkeypatch):
    monkeypatch.setattr("metaprior.lab.studies._workers.CONNECT_SECONDS", 0.5)
    with pytest.raises(ConnectionError, match="There is no Dask scheduler at tcp://127.0.0.1:1 "):
        run_jobs(study(1), tmp_path, dask="tcp://127.0.0.1:1")


@pytest.mark.parametrize("module", ["pandas", "pyarrow", "distributed"])
def test_engine_names_a_missing_extra_before_anything_runs(tmp_path, notes, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)  # what Python takes for not installed
    with pytest.raises(ValueError, match=rf"need {module}, .*'metaprior\[study\]'"):
        run_jobs(study(1), tmp_path, dask="tcp://127.0.0.1:1" if module == "distributed" else None)
    assert executions(notes) == []


class Cluster(NamedTuple):
    address: str
    scheduler: subprocess.Popen
    workers: list[subprocess.Popen]


def address_in(path):
    """What a scheduler has written of itself; nothing while it has not, or not all of it."""
    try:
        return json.loads(path.read_text())["address"]
    except (FileNotFoundError, json.JSONDecodeError):
        return None


@contextmanager
def cluster(folder, num_workers):
    """A Dask scheduler and its workers on the loopback interface, each a process of its own."""
    where = folder / "scheduler.json"
    scheduler_options = (
        *("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(where)),
        *("--no-dashboard", "--dashboard-address", "127.0.0.1:0"),
    )
    worker_options = (
        *("--scheduler-file", str(where), "--local-directory", str(folder)),
        *("--no-nanny", "--nworkers", "1", "--nthreads", "1", "--no-dashboard"),
    )
    with ExitStack() as stack:
        scheduler = stack.enter_context(program("-m", "dask", "scheduler", *scheduler_options))
        workers = [
            stack.enter_context(program("-m", "dask", "worker", *worker_options))
            for _ in range(num_workers)
        ]
        address = wait_until(lambda: address_in(where), "the scheduler listens")
        yield Cluster(address, scheduler, workers)


@contextmanager
def when_a_job_hangs(note, act):
    """Call `act` with the process of the job as soon as it has left its note."""

    def watch():
        wait_until(lambda: says_its_process(note), "a job hangs")
        act(int(note.read_text()))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    yield
    thread.join()


@pytest.mark.slow
def test_engine_survives_a_dask_cluster_that_loses_a_worker(tmp_path, notes, undisturbed):
    jobs = [*study(8, hold=(3,)), Job(f"{HERE}:refuse", {"seed": 99})]
    with cluster(tmp_path, 2) as dask:
        processes = {worker.pid: worker for worker in dask.workers}
        with when_a_job_hangs(notes / "held-3", lambda pid: processes[pid].kill()):
            report = run_jobs(jobs, tmp_path / "s", dask=dask.address)
        assert sorted(worker.poll() is None for worker in dask.workers) == [False, True]
    assert report.done == 8
    [failure] = report.failures
    assert failure.reason == "ArithmeticError: the seed 99 is not to my taste"
    assert executions(notes).count(3) == 2
    assert_same_records(tmp_path / "s", undisturbed(jobs[:8]))


@pytest.mark.slow
def test_engine_explains_a_dask_cluster_that_loses_its_scheduler(tmp_path, notes, undisturbed):
    jobs = study(5, hold=(3,))
    with cluster(tmp_path, 1) as dask:
        with when_a_job_hangs(notes / "held-3", lambda pid: dask.scheduler.kill()):
            with pytest.raises(ConnectionError, match=f"scheduler at {dask.address} is gone"):
                run_jobs(jobs, tmp_path / "s", dask=dask.address)
    assert run_jobs(jobs, tmp_path / "s").exit_code == 0
    assert_same_records(tmp_path / "s", undisturbed(jobs))


@pytest.mark.slow
def test_engine_gives_up_a_job_that_kills_its_workers(tmp_path, notes, monkeypatch):
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    crash = Job(f"{HERE}:crash", {"seed": 7})
    with cluster(tmp_path, 2) as dask:
        report = run_jobs([crash, *study(3)], tmp_path / "s", dask=dask.address)
    # A job that waited on the same worker may be blamed with it, and is not lost for that.
    reasons = {failure.job: failure.reason for failure in report.failures}
    assert reasons[crash].startswith("KilledWorker: ")
    assert report.done + len(reasons) == 4
    assert run_jobs(study(3), tmp_path / "s").exit_code == 0
    assert set(read_records(tmp_path / "s")["seed"]) == {0, 1, 2}
