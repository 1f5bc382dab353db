"""The loop of a technician, through the real commands: past files, report, run, learning again."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import chromium as browser
from tests.chromium import DESK
from tests.chromium import chromium as chromium

pytestmark = [pytest.mark.slow, pytest.mark.browser]

ROUNDS = 6
OPERATORS = ("Ines", "Jonas", "Mara")


def commanded(*arguments) -> str:
    """What the command printed, started as a user starts it."""
    done = subprocess.run(
        [sys.executable, "-m", "metaprior.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "COLUMNS": "120"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def yield_at(temperature: float, pressure: float, shift: float) -> float:
    return 90 - ((temperature - 180 - 20 * shift) / 12) ** 2 - (4 * (pressure - 2.2 - shift)) ** 2


def comma(number: float) -> str:
    return f"{number:.2f}".replace(".", ",")


def write_past_runs(folder: Path) -> None:
    """Eight days at a machine, as a spreadsheet with decimal commas saves them; one row failed."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for day in range(8):
        shift = 0.2 * rng.normal()
        lines = ["date;operator;temp;pressure;comment;yield_pct"]
        for row in range(10):
            temperature, pressure = rng.uniform(140, 220), rng.uniform(1, 4)
            value = comma(yield_at(temperature, pressure, shift))
            cells = [
                f"{day + 1:02d}.10.2026",
                OPERATORS[day % 3],
                comma(temperature),
                comma(pressure),
                "valve cleaned" if row == 4 else "",
                "failed" if (day, row) == (5, 7) else value,
            ]
            lines.append(";".join(cells))
        (folder / f"day-{day + 1}.csv").write_text("\n".join(lines) + "\n")


def add_humidity(run: Path) -> None:
    """What a user does in a spreadsheet: a column of their own, filled in so far."""
    header, *rows = csv.reader(run.read_text().splitlines())
    told = [[*header, "humidity"], *([*row, f"{41 + i}.5"] for i, row in enumerate(rows))]
    run.write_text("".join(",".join(row) + "\n" for row in told))


def test_loop_of_a_technician(tmp_path):
    past, prior, run = tmp_path / "past", tmp_path / "prior", tmp_path / "today.csv"
    write_past_runs(past)
    budget = ("--budget", "fast", "--unit", "%")

    printed = commanded("learn", past, "--out", prior, *budget)
    for said in ("decimal commas", "'operator'", "'comment'", "day-6.csv, row 9"):
        assert said in " ".join(printed.split()), said

    page = tmp_path / "report.html"
    commanded("report", prior, "--out", page)
    dom = browser.browse(page, DESK, "--dump-dom")
    assert "8 runs" in dom and "pressure" in dom and dom.count("<svg") > 3

    values = []
    for count in range(ROUNDS):
        asked = json.loads(commanded("suggest", "--prior", prior, "--run", run, "--json"))
        (row,) = asked["rows"]
        values.append(yield_at(row["point"]["temp"], row["point"]["pressure"], 0.1))
        commanded("tell", "--prior", prior, "--run", run, comma(values[-1]))
        if count == 2:
            add_humidity(run)
    header, *rows = csv.reader(run.read_text().splitlines())
    assert header == ["temp", "pressure", "yield_pct", "humidity"] and len(rows) == ROUNDS
    assert [row[3] for row in rows] == ["41.5", "42.5", "43.5", "", "", ""]
    assert max(values) > 88  # a random point is above that in one case out of twelve

    again = json.loads(
        commanded("learn", past, run, "--out", tmp_path / "again", *budget, "--json")
    )
    assert again["runs"]["names"][-1] == "today" and again["runs"]["points"][-1] == ROUNDS
    assert [each["name"] for each in again["space"]["dimensions"]] == ["temp", "pressure"]
    assert any("'humidity' is in a few of the files only" in n for n in again["runs"]["notes"])
