"""Jobs and their names, and the files of a study: whole or not at all, and in one order."""

import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.lab.studies._folder import (
    RecordWarning,
    finished_jobs,
    read_records,
    read_results,
    read_study,
    start_study,
    write_record,
)
from metaprior.lab.studies._jobs import Job, canonical_json

KIND = "tests.lab.studies.engine_jobs:measure"

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
SPECIFICATIONS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)


def reversed_keys(value: Any) -> Any:
    """The same value, with every dict filled in the opposite order."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


def exactly(value):
    """`value` in a form where 1, 1.0 and True differ, as do 0.0 and -0.0."""
    if isinstance(value, dict):
        return {key: exactly(item) for key, item in value.items()}
    if isinstance(value, list):
        return [exactly(item) for item in value]
    return type(value), value.hex() if isinstance(value, float) else value


@given(SPECIFICATIONS)
def test_canonical_json_holds_every_value_exactly(specification):
    text = canonical_json(specification)
    assert text.isascii()
    assert exactly(json.loads(text)) == exactly(specification)


@given(SPECIFICATIONS)
def test_job_ignores_the_order_of_keys(specification):
    job, other = Job(KIND, specification), Job(KIND, reversed_keys(specification))
    assert job.name == other.name
    assert job == other
    assert len({job, other}) == 1


@given(SPECIFICATIONS, SPECIFICATIONS)
def test_job_names_tell_specifications_apart(one, other):
    same = exactly(one) == exactly(other)
    assert (Job(KIND, one).name == Job(KIND, other).name) == same


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), (0.0, -0.0), (None, "null")])
def test_job_names_differ_for_values_that_python_takes_for_equal(one, other):
    assert Job(KIND, {"a": one}) != Job(KIND, {"a": other})


def test_job_name_is_the_hash_of_text_written_by_hand():
    text = (
        '{"format":2,"kind":"tests.lab.studies.engine_jobs:measure",'
        '"specification":{"a":[0.1,null],"b":true}}'
    )
    expected = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert Job(KIND, {"b": True, "a": (0.1, None)}).name == expected
    assert (
        Job("tests.lab.studies.engine_jobs:refuse", {"b": True, "a": (0.1, None)}).name != expected
    )


def test_job_keeps_its_specification_when_the_original_changes():
    sizes = [1, 2]
    job = Job(KIND, {"sizes": sizes})
    sizes.append(3)
    assert job.specification == {"sizes": [1, 2]}
    assert job.name == Job(KIND, {"sizes": [1, 2]}).name


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_job_refuses_numbers_that_are_not_finite_by_place(value):
    with pytest.raises(
        ValueError, match=r"^specification\.method\.sizes\[1\] is -?(nan|inf), .*JSON cannot hold"
    ):
        Job(KIND, {"method": {"sizes": [1.0, value]}})


@pytest.mark.parametrize("value", [np.zeros(2), np.int64(1), {1, 2}, b"x", 1j])
def test_job_refuses_values_that_json_cannot_hold_by_place(value):
    with pytest.raises(
        TypeError, match=rf"^specification\.a\.b is of type {type(value).__name__}, .*JSON"
    ):
        Job(KIND, {"a": {"b": value}})


def test_job_refuses_keys_that_are_not_strings():
    with pytest.raises(TypeError, match="^specification.a has the key 1 of type int"):
        Job(KIND, {"a": {1: "x"}})


@pytest.mark.parametrize("kind", ["", "module", "module:", ":f", "a b:f", "a:f.g", "a:b:c", "1a:f"])
def test_job_kind_is_a_module_and_a_function(kind):
    with pytest.raises(ValueError, match="'module:function', got"):
        Job(kind, {})


@pytest.mark.parametrize(
    "kind", ["no_such_module:f", "tests.lab.studies.engine_jobs:no_such_function"]
)
def test_job_names_a_kind_that_is_missing(kind):
    with pytest.raises(ValueError, match=f"There is no {kind} to run here"):
        Job(kind, {}).run()


def some_jobs():
    """Jobs whose natural order is neither that of their names nor that of their text."""
    return [
        Job(KIND, {"environment": environment, "method": {"name": "A", "kappa": kappa}, "seed": s})
        for environment in ("Branin", "Mixture")
        for kappa in (0.5, 1e-3)
        for s in (10, 2)
    ]


def columns_of(job, rows=4):
    rng = np.random.default_rng(int(job.name, 16))
    return {
        "step": np.arange(rows),
        "regret": rng.normal(size=rows),
        "task": np.array(["t"] * rows),
    }


def test_read_records_has_one_order_and_the_specifications(tmp_path):
    jobs = some_jobs()
    for job in jobs:
        write_record(tmp_path / "a", job, columns_of(job))
    for job in reversed(jobs):
        write_record(tmp_path / "b", job, columns_of(job))
    frame = read_records(tmp_path / "a")
    pd.testing.assert_frame_equal(frame, read_records(tmp_path / "b"), check_exact=True)
    assert list(frame.columns) == [
        "job",
        "environment",
        "method.kappa",
        "method.name",
        "seed",
        "step",
        "regret",
        "task",
    ]
    rows = frame[["environment", "method.kappa", "seed", "step"]].to_numpy().tolist()
    assert rows == sorted(rows)  # seed 2 before seed 10
    for job in jobs:
        mine = frame[frame["job"] == job.name]
        np.testing.assert_array_equal(mine["regret"], columns_of(job)["regret"])
        assert set(mine["seed"]) == {job.specification["seed"]}
        assert set(mine["method.kappa"]) == {job.specification["method"]["kappa"]}


def test_write_record_is_byte_for_byte_the_same(tmp_path):
    job = some_jobs()[0]
    one = write_record(tmp_path / "a", job, columns_of(job))
    other = write_record(tmp_path / "b", job, columns_of(job))
    assert one.read_bytes() == other.read_bytes()
    assert json.loads(pq.read_schema(one).metadata[b"metaprior.job"]) == {
        "format": 2,
        "kind": KIND,
        "specification": job.specification,
    }
    assert [path.name for path in one.parent.iterdir()] == [one.name]


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.floats(width=64), max_size=6),
    st.lists(st.text(max_size=4), min_size=6, max_size=6),
)
def test_read_records_returns_every_value_written(tmp_path_factory, values, words):
    folder = tmp_path_factory.mktemp("values")
    job = Job(KIND, {"seed": 0})
    words = words[: len(values)]
    write_record(folder, job, {"v": np.array(values, float), "w": np.array(words, object)})
    frame = read_records(folder)
    np.testing.assert_array_equal(frame["v"].to_numpy(float), np.array(values, float))
    assert frame["w"].tolist() == words
    shutil.rmtree(folder)


def test_read_records_of_specifications_with_other_keys_and_types(tmp_path):
    jobs = [
        Job(KIND, {"width": 32, "sizes": [1, 2]}),
        Job(KIND, {"width": "auto", "rate": None}),
        Job(KIND, {"width": {"first": 8}}),
    ]
    for rows, job in enumerate(jobs):
        write_record(tmp_path, job, {"x": np.arange(rows)})
    frame = read_records(tmp_path)
    assert len(frame) == 0 + 1 + 2
    assert frame["x"].tolist() in ([0, 0, 1], [0, 1, 0])
    assert frame.loc[frame["job"] == jobs[1].name, "width"].tolist() == ["auto"]
    assert frame.loc[frame["job"] == jobs[2].name, "width.first"].tolist() == [8, 8]


def test_read_records_of_given_jobs_only(tmp_path):
    jobs = some_jobs()
    for job in jobs:
        write_record(tmp_path, job, columns_of(job))
    assert set(read_records(tmp_path, jobs=jobs[:2])["job"]) == {job.name for job in jobs[:2]}


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ({"seed": 1}, r"returned the columns \['seed'\]"),
        ({"job": 1}, "has the entry 'job'"),
        ({"a": {"b": 1}, "a.b": 2}, r"two entries for the columns \['a.b'\]"),
    ],
)
def test_write_record_refuses_columns_of_one_name(tmp_path, specification, message):
    with pytest.raises(ValueError, match=message):
        write_record(tmp_path, Job(KIND, specification), {"seed": np.zeros(2)})
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A record of one job, whose file is then damaged in copies."""
    job = Job(KIND, {"seed": 1})
    return job, write_record(tmp_path_factory.mktemp("record"), job, columns_of(job, rows=200))


def assert_refused(folder, job, content):
    """Put `content` in place of the record of `job`; it must be named, and not taken for one."""
    path = folder / "jobs" / f"{job.name}.parquet"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    with pytest.warns(RecordWarning, match=f"{path} is not the record .* unfinished") as told:
        assert finished_jobs(folder, [job]) == set()
    assert len(told) == 1
    assert "\n" not in str(told[0].message)


@settings(max_examples=30, deadline=None)
@given(part=st.floats(0, 1, exclude_max=True))
def test_finished_jobs_refuses_truncated_records(tmp_path_factory, record, part):
    job, path = record
    whole = path.read_bytes()
    assert_refused(tmp_path_factory.getbasetemp(), job, whole[: int(part * len(whole))])


@settings(max_examples=30, deadline=None)
@given(part=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_finished_jobs_finds_a_flipped_bit_in_a_record(tmp_path_factory, record, part, bit):
    job, path = record
    content = bytearray(path.read_bytes())
    regret = pq.ParquetFile(path).metadata.row_group(0).column(1)
    assert regret.path_in_schema == "regret"
    # The last hundred bytes of a column of 200 doubles are data, whatever precedes them.
    end = regret.dictionary_page_offset + regret.total_compressed_size
    content[end - 1 - int(part * 100)] ^= 1 << bit
    assert_refused(tmp_path_factory.getbasetemp(), job, bytes(content))


def test_finished_jobs_refuses_foreign_records(tmp_path, record):
    job, path = record
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "foreign.parquet")
    assert_refused(tmp_path, job, (tmp_path / "foreign.parquet").read_bytes())
    assert_refused(tmp_path, Job(KIND, {"seed": 2}), path.read_bytes())  # of another job
    text = job.text.replace('"format":2', '"format":3')
    later = pa.table({"x": [1, 2]}, metadata={b"metaprior.job": text.encode()})
    pq.write_table(later, tmp_path / "later.parquet")
    assert_refused(tmp_path, job, (tmp_path / "later.parquet").read_bytes())
    assert_refused(tmp_path, job, b"")


def test_read_records_leaves_out_damaged_files_with_a_warning(tmp_path):
    jobs = some_jobs()[:3]
    paths = [write_record(tmp_path, job, columns_of(job)) for job in jobs]
    paths[1].write_bytes(paths[1].read_bytes()[:-20])
    with pytest.warns(RecordWarning, match=paths[1].name):
        frame = read_records(tmp_path)
    assert set(frame["job"]) == {jobs[0].name, jobs[2].name}


def test_read_records_refuses_a_folder_without_records(tmp_path):
    with pytest.raises(ValueError, match="No job of a study has finished in .*run the study"):
        read_records(tmp_path)


def test_write_record_leaves_the_earlier_file_when_the_disk_is_full(tmp_path, monkeypatch):
    job = some_jobs()[0]
    path = write_record(tmp_path, job, columns_of(job))
    before = path.read_bytes()

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(ValueError, match="cannot be written .no space left"):
        write_record(tmp_path, job, columns_of(job, rows=9))
    assert path.read_bytes() == before
    assert len(read_records(tmp_path)) == 4


def test_start_study_accepts_the_same_study_and_refuses_another(tmp_path):
    start_study(tmp_path / "s", {"environments": ["Branin"], "seeds": 5})
    start_study(tmp_path / "s", {"seeds": 5, "environments": ("Branin",)})
    assert read_study(tmp_path / "s") == {"environments": ["Branin"], "seeds": 5}
    message = "holds another study .its `seeds` is 5, yours is 25.; name another folder"
    with pytest.raises(ValueError, match=message):
        start_study(tmp_path / "s", {"environments": ["Branin"], "seeds": 25})
    with pytest.raises(ValueError, match="its `steps` is absent, yours is 3"):
        start_study(tmp_path / "s", {"environments": ["Branin"], "seeds": 5, "steps": 3})
    assert read_study(tmp_path / "s")["seeds"] == 5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[1]", "not written by a study"),
        ('{"format": "x"}', "not written by a study"),
        ('{"format": "metaprior-study", "format_version": 99}', "format version 99"),
    ],
)
def test_start_study_refuses_a_foreign_file(tmp_path, content, message):
    (tmp_path / "study.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        start_study(tmp_path, {"seeds": 5})
    assert (tmp_path / "study.json").read_text() == content


OLD_STUDY = {
    "format": "metaprior-study",
    "format_version": 1,
    "specification": {"kind": "offline", "methods": ["VanillaGP"]},
}


@pytest.mark.parametrize("read", [read_study, read_results, lambda f: start_study(f, {"seeds": 5})])
def test_study_folder_of_format_1_is_refused_with_what_to_do(tmp_path, read):
    (tmp_path / "study.json").write_text(json.dumps(OLD_STUDY))
    with pytest.raises(ValueError) as raised:
        read(tmp_path)
    message = str(raised.value)
    assert message.startswith(f"{tmp_path / 'study.json'} has format version 1, ")
    assert "; run the study again in a new folder, or" in message and "\n" not in message
    assert json.loads((tmp_path / "study.json").read_text()) == OLD_STUDY


def test_finished_jobs_refuses_a_record_of_format_1(tmp_path):
    """A job that an older layout ran is another job: it is named, and runs again."""
    old = {"format": 1, "kind": "metaprior.studies:run_offline", "specification": {"seed": 1}}
    text = json.dumps(old, sort_keys=True, separators=(",", ":"))
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    (tmp_path / "jobs").mkdir()
    table = pa.table({"x": [1, 2]}, metadata={b"metaprior.job": text.encode()})
    pq.write_table(table, tmp_path / "jobs" / f"{name}.parquet")
    job = Job("metaprior.lab.studies:run_offline", {"seed": 1})
    assert finished_jobs(tmp_path, [job]) == set()
    with pytest.warns(RecordWarning, match=f"{name}.parquet .*format version 1.*run the study"):
        with pytest.raises(ValueError, match="No job of a study has finished"):
            read_records(tmp_path)


def test_read_results_has_the_specification_and_records_on_disk(tmp_path):
    """Against the Parquet files themselves, read without any of the project's code."""
    start_study(tmp_path, {"kind": "offline", "seeds": 2})
    jobs = [Job(KIND, {"environment": "branin", "method": m}) for m in ("ABLR", "FixedGP")]
    paths = {
        job.specification["method"]: write_record(tmp_path, job, columns_of(job)) for job in jobs
    }
    results = read_results(tmp_path)
    assert (results.folder, results.kind) == (tmp_path, "offline")
    assert (
        results.specification == json.loads((tmp_path / "study.json").read_text())["specification"]
    )
    assert results.records["environment"].tolist() == ["branin"] * 8
    for method, path in paths.items():
        mine = results.records[results.records["method"] == method]
        for name, column in pq.read_table(path).to_pydict().items():
            assert mine[name].tolist() == column


def test_read_study_refuses_a_file_without_a_specification(tmp_path):
    (tmp_path / "study.json").write_text('{"format": "metaprior-study", "format_version": 2}')
    with pytest.raises(ValueError, match="study.json has no specification; restore it"):
        read_study(tmp_path)


def test_read_study_refuses_a_folder_without_a_study(tmp_path):
    with pytest.raises(ValueError, match="There is no study in"):
        read_study(tmp_path)


@pytest.mark.parametrize("module", ["pyarrow", "pandas"])
def test_read_records_names_a_missing_extra(tmp_path, monkeypatch, module):
    job = Job(KIND, {"seed": 1})
    write_record(tmp_path, job, columns_of(job))
    monkeypatch.setitem(sys.modules, module, None)  # what Python takes for not installed
    with pytest.raises(ValueError, match=rf"need {module}, .*pip install 'metaprior\[study\]'"):
        read_records(tmp_path)


def test_engine_is_imported_without_the_extra():
    code = (
        "import sys; import metaprior.lab.studies._engine; "
        "print({'pandas', 'pyarrow', 'distributed', 'dask'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
