"""Files of spaces with conditions and steps: space files, past runs, and a run that goes on."""

import numpy as np
import pytest

import metaprior as mp
from metaprior.data.csv import read_run, read_runs, read_space, write_space

SPACE = mp.Space(
    kind=mp.Categorical(["tree", "linear"]),
    depth=mp.Integer(1, 9, step=2, when={"kind": ["tree"]}),
    eta=mp.Real(0.0, 1.0, step=0.1, when={"kind": ["tree"], "loops": [2, 3]}),
    alpha=mp.Real(1e-3, 1.0, log=True, when={"kind": ["linear"]}),
    loops=mp.Integer(1, 3),
    fast=mp.Categorical([False, True], when={"kind": ["linear"]}),
)
POINTS = [
    {"kind": "tree", "depth": 3, "eta": 0.3, "loops": 2},
    {"kind": "linear", "alpha": 0.25, "loops": 1, "fast": True},
    {"kind": "tree", "depth": 9, "loops": 1},
]
ROWS = (
    "kind,depth,eta,alpha,loops,fast,y\ntree,3,0.3,,2,,1\nlinear,,,0.25,1,true,2\ntree,9,,,1,,3\n"
)


def test_space_file_holds_conditions_and_steps(tmp_path):
    path = write_space(SPACE, tmp_path / "space.toml")
    assert read_space(path) == SPACE
    assert 'when = { kind = ["tree"] }' in path.read_text()
    assert "step = 0.1" in path.read_text()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[a]\nkind = "real"\nlow = 0\nhigh = 1\nwhen = { b = ["x"] }\n', "'a' depends on 'b'"),
        ('[a]\nkind = "real"\nlow = 0\nhigh = 1\nwhen = { b = "x" }\n', "`when` has 'x' for 'b'"),
        ('[a]\nkind = "real"\nlow = 0\nhigh = 1\nstep = 0.3\n', "does not fit its bounds"),
        (
            '[a]\nkind = "real"\nlow = 0\nhigh = 1\nwhen = { c = ["z"] }\n'
            '[c]\nkind = "categorical"\nchoices = ["x", "y"]\n',
            "'z', which is no value of",
        ),
    ],
)
def test_space_file_names_conditions_that_cannot_be(tmp_path, text, problem):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(ValueError) as raised:
        read_space(path)
    assert str(path) in str(raised.value) and problem in str(raised.value), raised.value


def test_read_runs_takes_empty_cells_where_nothing_exists(tmp_path):
    (tmp_path / "a.csv").write_text(ROWS)
    (tmp_path / "b.csv").write_text(ROWS)
    read = read_runs(tmp_path, space=SPACE)
    points, values = read.tasks.run(0)
    assert points == [{**p, "alpha": pytest.approx(0.25)} if "alpha" in p else p for p in POINTS]
    assert values.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("tree,3,,,2,,1", "b.csv, row 5, column 'eta': has no value, but it exists since 'kind'"),
        ("linear,,,,1,true,1", "b.csv, row 5, column 'alpha': has no value"),
        (
            "linear,3,,0.5,1,true,1",
            "b.csv, row 5, column 'depth': received 3.0, but it exists only",
        ),
        ("tree,3,,,,,1", "b.csv, row 5, column 'loops': the cell is empty"),
        ("tree,4,,,1,,1", "b.csv, row 5, column 'depth': received 4.0, which is not 1 plus"),
    ],
)
def test_read_runs_names_cells_that_break_conditions(tmp_path, row, problem, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(ROWS)
    (tmp_path / "b.csv").write_text(f"{ROWS}{row}\n")
    with pytest.raises(ValueError) as raised:
        read_runs(["a.csv", "b.csv"], space=SPACE)
    assert problem in str(raised.value), raised.value


def test_run_file_goes_on_with_empty_cells(tmp_path):
    path = tmp_path / "run.csv"
    run = read_run(path, SPACE).append(POINTS)
    run = run.fill(2, 0.5).fill(3, None)
    again = read_run(path, SPACE)
    assert [row.point for row in again.rows] == POINTS
    assert [row.is_observed for row in again.rows] == [True, False, False]
    assert again.rows[1].is_failed and again.rows[2].is_pending
    assert path.read_text().splitlines()[3] == "tree,9,,,1,,"
    path.write_text(path.read_text().replace("tree,9,,,1,,", "tree,9,0.5,,1,,"))
    with pytest.raises(ValueError, match="row 4, column 'eta': received 0.5, but it exists only"):
        read_run(path, SPACE)


def test_read_runs_says_that_a_column_is_on_a_grid(tmp_path):
    rng = np.random.default_rng(0)
    for name in "ab":
        rows = [
            f"{50 * k},{x:.6f},{x:.3f}"
            for k, x in zip(range(4, 16), rng.uniform(size=12), strict=True)
        ]
        (tmp_path / f"{name}.csv").write_text("stir_rpm,x,y\n" + "\n".join(rows) + "\n")
    read = read_runs(tmp_path)
    assert read.space.dimensions[0] == mp.Integer(200, 750, step=50)
    assert read.notes == ["stir_rpm: all values are multiples of 50, taken as step=50."]
