"""Cells of text that a spreadsheet would run: written as text, and read back as they were."""

import csv

import pytest

import metaprior as mp
from metaprior.data.csv import read_run, read_runs
from metaprior.data.csv._shield import shielded, unshielded

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "'=1", "''=1"]
PLAIN = ["relu", "-1.5", "+3", "-1,5", "1e-3", "'quoted'", "a=b", "", "'", "O'Neil"]


@pytest.mark.parametrize("text", FORMULAS + PLAIN)
def test_shielded_is_read_back(text):
    assert unshielded(shielded(text)) == text
    assert (shielded(text) == text) is (text in PLAIN)
    assert shielded(text)[:1] not in tuple("=@") and unshielded(text) in (text, text[1:])


def test_run_file_writes_no_formula(tmp_path):
    space = mp.Space(**{"=x": mp.Real(-1.0, 1.0), "c": mp.Categorical(FORMULAS + PLAIN[:1])})
    path = tmp_path / "run.csv"
    points = [{"=x": -0.5, "c": choice} for choice in FORMULAS]
    read_run(path, space).append(points)
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    cells = [*header, *(row[1] for row in rows)]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@")]
    assert [row[0] for row in rows] == ["-0.5"] * len(rows)
    run = read_run(path, space)
    assert [row.point for row in run.rows] == points
    for row in run.rows:
        run = run.fill(row.number, float(row.number))
    (tmp_path / "other.csv").write_bytes(path.read_bytes())
    read = read_runs(tmp_path, space=space)
    assert [point["c"] for point in read.tasks.run(0)[0]] == FORMULAS
