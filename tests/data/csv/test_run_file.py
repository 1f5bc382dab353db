"""Run files: what is read, and that nothing but the wanted cells changes."""

import csv
import io
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metaprior as mp
from metaprior.data import Quantity
from metaprior.data.csv._run_file import parse_run, read_run
from metaprior.files import replace_file

SPACE = mp.Space(
    x=mp.Real(-1.0, 1.0), steps=mp.Integer(1, 9), act=mp.Categorical(["relu", "t, a;nh", True])
)
POINT = {"x": 0.25, "steps": 3, "act": "relu"}


def write(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_run_file_starts_with_a_header(tmp_path):
    run = read_run(tmp_path / "run.csv", SPACE)
    assert run.rows == []
    run.append([POINT, {**POINT, "act": "t, a;nh", "x": -1.0}, {**POINT, "act": True}])
    written = (tmp_path / "run.csv").read_text()
    assert written == 'x,steps,act,value\n0.25,3,relu,\n-1,3,"t, a;nh",\n0.25,3,true,\n'


def test_run_file_rows_are_observed_pending_or_failed(tmp_path):
    path = write(
        tmp_path / "r.csv", "steps,x,value,act\n2,0.5,1.5,relu\n\n3,0,Failed,true\n4,1,,relu\n"
    )
    run = read_run(path, SPACE)
    assert [row.number for row in run.rows] == [2, 4, 5]
    assert [row.number for row in run.observed] == [2] and run.observed[0].value == 1.5
    assert [row.number for row in run.failed] == [4] and run.failed[0].point["act"] is True
    assert [row.point for row in run.pending] == [{"x": 1.0, "steps": 4, "act": "relu"}]
    assert isinstance(run.pending[0].point["steps"], int)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_run_file_keeps_the_dialect_of_a_spreadsheet(tmp_path, end, last):
    rows = ["x;steps;act;value", "0,5;2;relu;1,25", ' -0,25 ; 3 ;"t, a;nh"; ', "0,75;4;relu;"]
    before = b"\xef\xbb\xbf" + end.join(rows).encode() + end.encode() * last
    path = write(tmp_path / "r.csv", before)
    after = read_run(path, SPACE).fill(3, -2.5).append([POINT])
    text = path.read_bytes()
    lines = text.split(end.encode())
    original = before.split(end.encode())
    assert lines[:2] == original[:2] and lines[3] == original[3]
    assert lines[2] == b'-0,25;3;"t, a;nh";-2,5'
    assert lines[4] == b"0,25;3;relu;"
    assert [row.value for row in after.rows] == [1.25, -2.5, None, None]
    assert after.rows[1].point == {"x": -0.25, "steps": 3, "act": "t, a;nh"}


@settings(deadline=None, max_examples=100)
@given(
    values=st.lists(
        st.one_of(st.none(), st.just("failed"), st.floats(-1e6, 1e6, allow_nan=False)), max_size=6
    ),
    xs=st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6),
    delimiter=st.sampled_from([",", ";", "\t"]),
)
def test_run_file_is_read_alike_by_a_csv_reader(tmp_path_factory, values, xs, delimiter):
    path = tmp_path_factory.getbasetemp() / "filled.csv"
    header = delimiter.join(["x", "steps", "act", "value"]) + "\n"
    run = parse_run(path, header.encode(), SPACE)
    path.write_text(header)
    run = run.append([{**POINT, "x": x} for x in xs[: len(values)]])
    for i, value in enumerate(values):
        if value is not None:
            run = run.fill(i + 2, None if value == "failed" else value)
    found = list(csv.DictReader(io.StringIO(path.read_text()), delimiter=delimiter))
    assert [float(row["x"]) for row in found] == xs[: len(values)]
    for row, value in zip(found, values, strict=True):
        if value is None or value == "failed":
            assert row["value"] == (value or "")
        else:
            assert float(row["value"]) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,steps,value\n", "no column 'act'"),
        ("x,steps,act,y,score\n", "no column 'value' for the value and 2 that could be it (y, sc"),
        ("x,steps,act\n", "no column 'value' for the value; add one"),
        ("x,steps,act,value\n2,3,relu,\n", "row 2, column 'x'"),
        ("x,steps,act,value\n0,3,gelu,\n", "row 2, column 'act'"),
        ("x,steps,act,value\n0,3,,\n", "row 2, column 'act': the cell is empty"),
        (
            "x,steps,act,value\n0,3,relu,1\n0,3,relu,good\n",
            "row 3, column 'value': received 'good'",
        ),
        ("x,steps,act,value\n0,3,relu,1e999\n", "not a finite number"),
        ("x,steps,act,value\n0,3,relu\n", "row 2: the row has 3 cells and the header 4"),
        (b"\xff\xfe", "not UTF-8"),
        ('""\n,,\n', "has separators or quotes and nothing else"),
    ],
)
def test_run_file_names_unreadable_content_in_one_sentence(tmp_path, text, words):
    path = write(tmp_path / "r.csv", text)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="r.csv") as told:
        read_run(path, SPACE)
    assert words in str(told.value) and "\n" not in str(told.value)
    assert path.read_bytes() == before


def test_run_file_notices_a_change_by_another_program(tmp_path):
    path = write(tmp_path / "r.csv", "x,steps,act,value\n0,3,relu,\n")
    run = read_run(path, SPACE)
    theirs = "x,steps,act,value\n0,3,relu,7\n"
    write(path, theirs)
    with pytest.raises(ValueError, match="changed by another program"):
        run.append([POINT])
    assert path.read_text() == theirs


def test_run_file_is_unchanged_after_a_failed_write(tmp_path, monkeypatch):
    path = write(tmp_path / "r.csv", "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ValueError, match="no space left on device"):
        replace_file(path, b"new")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["r.csv"]


def test_run_file_keeps_links_and_permissions(tmp_path):
    path = write(tmp_path / "real.csv", "old")
    path.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    replace_file(link, b"new")
    assert link.is_symlink() and path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_run_file_keeps_what_the_user_writes_beside_the_run(tmp_path):
    text = (
        'date;x;steps;act;note;yield\n2026-10-01;0,5;2;relu;"1.5 bar; hot";1,25\n;0,75;4;relu;;\n'
    )
    path = write(tmp_path / "r.csv", text)
    run = read_run(path, SPACE, quantity=Quantity("yield", "%"))
    assert (run.value, [row.value for row in run.rows]) == ("yield", [1.25, None])
    run.fill(3, 2.5).append([POINT])
    lines = path.read_text().splitlines()
    assert lines[:2] == text.splitlines()[:2]
    assert lines[2:] == [";0,75;4;relu;;2,5", ";0,25;3;relu;;"]


def test_run_file_is_about_the_quantity_of_the_prior(tmp_path):
    run = read_run(tmp_path / "new.csv", SPACE, quantity=Quantity("yield [%]", "%"))
    assert run.append([POINT]).value == "yield [%]"
    assert (tmp_path / "new.csv").read_text().startswith("x,steps,act,yield [%]\n")
    # A file from before, or made by hand, may say it in the usual words.
    old = write(tmp_path / "old.csv", "x,steps,act,y\n0,3,relu,1\n")
    assert read_run(old, SPACE, quantity=Quantity("yield [%]")).value == "y"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("81,2", 81.2), ("-0,5", -0.5), (" 3.25 ", 3.25), ("0,125", 0.125), ("12", 12.0), ("x", None)],
)
def test_run_file_takes_values_with_a_decimal_comma(tmp_path, text, expected):
    assert read_run(tmp_path / "r.csv", SPACE).parsed(text) == expected


def test_run_file_asks_what_a_comma_before_three_digits_means(tmp_path):
    with pytest.raises(ValueError, match=r"'1,234' can be read as 1\.234 and as 1234; write it"):
        read_run(tmp_path / "r.csv", SPACE).parsed("1,234")
    german = write(tmp_path / "g.csv", "x;steps;act;value\n0,5;2;relu;1,25\n")
    assert read_run(german, SPACE).parsed("1,234") == 1.234
