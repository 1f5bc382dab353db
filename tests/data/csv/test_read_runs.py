"""Runs from CSV files: what is written is read back; roles of columns; every kind of bad input."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metaprior as mp
from metaprior.data import Categorical, Integer, Real, Space, Tasks
from metaprior.data.csv import read_runs, read_space, write_space
from metaprior.data.csv._shield import unshielded

RUNS = {
    "a.csv": "x,act,y\n0.5,relu,1\n1.5,tanh,2\n2.5,relu,3\n",
    "b.csv": "x,act,y\n0.25,tanh,4\n2.75,relu,5\n",
}


def write(folder, files):
    for name, content in files.items():
        (folder / name).write_text(content)
    return [folder / name for name in files]


def edited(name, old, new):
    """The usual files with one change."""
    assert old in RUNS[name]
    return RUNS | {name: RUNS[name].replace(old, new, 1)}


# Reading back.

texts = st.text(st.sampled_from("ab,;|\t'\"\n é漢#=[]"), min_size=1, max_size=6).filter(
    # A cell such as `'=1` is the text `=1`, kept from a spreadsheet that would compute it.
    lambda text: text == text.strip() and unshielded(text) == text
)


@settings(deadline=None, max_examples=80)
@given(
    seed=st.integers(0, 2**31 - 1),
    bounds=st.lists(st.floats(-1e30, 1e30), min_size=2, max_size=2, unique=True).map(sorted),
    start=st.integers(-1000, 1000),
    choices=st.lists(texts, min_size=2, max_size=4, unique=True),
    delimiter=st.sampled_from(",;\t|"),
    direction=st.sampled_from(["maximize", "minimize"]),
    together=st.booleans(),
)
def test_read_runs_returns_written_runs(
    tmp_path_factory, seed, bounds, start, choices, delimiter, direction, together
):
    space = Space(
        **{
            "rate": Real(*bounds),
            "log rate": Real(1e-5, 10.0, log=True),
            "n": Integer(start, start + 7),
            "act": Categorical(choices),
            "either": Categorical([True, False, 3, 0.5, "none"]),
        }
    )
    rng = np.random.default_rng(seed)
    runs = []
    for length in rng.integers(1, 6, 3):
        points = space.decode(rng.uniform(size=(length, space.num_columns)))
        runs.append((points, rng.normal(size=length) * 10.0 ** rng.integers(-8, 8)))
    expected = Tasks.from_runs(runs, space=space, direction=direction)

    folder = tmp_path_factory.mktemp("runs")
    header = ["y", *space.names[::-1]]  # the order of the columns is free
    rows = [
        [
            (run, [value.item(), *list(point.values())[::-1]])
            for point, value in zip(*pair, strict=True)
        ]
        for run, pair in enumerate(runs)
    ]
    if together:
        # Rows of different runs may be mixed; each run keeps its order.
        mixed = [row for column in zip_longest_rows(rows) for row in column]
        table = [["Task", *header], *([f"run {run}", *cells] for run, cells in mixed)]
        save(folder / "all.csv", table, delimiter)
    else:
        for run, cells in enumerate(rows):
            save(folder / f"{run}.csv", [header, *(c for _, c in cells)], delimiter)

    read = read_runs(folder, space=space, direction=direction)
    assert read.space == space and read.value == "y"
    assert read.tasks.direction == direction
    assert read.names_of_runs == [f"run {i}" if together else f"{i}" for i in range(3)]
    for name in ("x", "y", "mask"):
        np.testing.assert_array_equal(getattr(read.tasks, name), getattr(expected, name))


def zip_longest_rows(rows):
    for place in range(max(map(len, rows))):
        yield [run[place] for run in rows if place < len(run)]


def save(path, table, delimiter):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows(table)


def test_read_runs_with_the_inferred_space_gives_the_same_tasks(tmp_path):
    files = {
        "a.csv": "lr,depth,opt,acc\n0.001,2,adam,0.5\n0.1,7,adam,0.75\n0.0001,3,adam,0.5\n",
        "b.csv": "lr,depth,opt,acc\n0.01,1,adam,0.25\n",
    }
    paths = write(tmp_path, files)
    read = read_runs(paths)
    assert read.space.names == ("lr", "depth")
    assert read.space.dimensions[1] == Integer(1, 7)
    assert read.notes == [
        "The value is taken from 'acc', the last column of numbers.",
        "The column 'opt' is always 'adam': left out of the space.",
    ]
    again = read_runs(paths, space=read_space(write_space(read.space, tmp_path / "space.toml")))
    assert again.space == read.space
    np.testing.assert_array_equal(again.tasks.x, read.tasks.x)
    points, values = read.tasks.run(0)
    assert [point["depth"] for point in points] == [2, 7, 3]
    np.testing.assert_allclose([point["lr"] for point in points], [1e-3, 0.1, 1e-4], rtol=1e-12)
    assert values.tolist() == [0.5, 0.75, 0.5]


def test_read_runs_is_public():
    assert mp.data.csv.read_runs is read_runs


# Roles of columns.


def test_read_runs_accepts_files_with_and_without_a_run_column(tmp_path):
    files = {
        "one.csv": "x,y\n1,1\n2,5\n",
        "many.csv": "y,RUN,x\n3,left,4\n4,right,1\n5,left,2\n",
        "more.csv": "x,y,run\n1,2,left\n",
    }
    read = read_runs(write(tmp_path, files))
    more = [f"{tmp_path / name}:left" for name in ("many.csv", "more.csv")]
    assert read.names_of_runs == ["one", more[0], "right", more[1]]
    assert [read.tasks.run(i)[1].tolist() for i in range(4)] == [[1, 5], [3, 5], [4], [2]]
    assert [point["x"] for point in read.tasks.run(1)[0]] == [4, 2]


def test_read_runs_prefers_named_columns_to_guesses(tmp_path):
    content = "y,task,z,dataset,when\n1,5,2,a,mon\n2,6,3,b,tue\n3,7,5,a,wed\n"
    paths = write(tmp_path, {"all.csv": content})
    read = read_runs(paths, value="z", task="dataset", ignore=["when"])
    assert read.space == Space(y=Integer(1, 3), task=Integer(5, 7))
    assert read.names_of_runs == ["a", "b"]
    assert read.tasks.run(0)[1].tolist() == [2, 5]
    # What the space calls a dimension is one.
    space = Space(y=Integer(1, 3), task=Integer(0, 9))
    read = read_runs(paths, space=space, task="dataset", ignore=["when"])
    assert read.value == "z" and read.space == space


def test_read_runs_takes_the_last_column_of_numbers_as_value_even_if_damaged(tmp_path):
    files = {"a.csv": "x,auc,note\n1,0.5,ok\n2,0.7,ok\n", "b.csv": "x,auc,note\n1,0.5,ok\n3,?,ok\n"}
    with pytest.raises(
        ValueError, match="b.csv, row 3, column 'auc': received '\\?', which is not"
    ):
        read_runs(write(tmp_path, files))


# What is odd is said.


def notes_of(tmp_path, files, **options):
    read = read_runs(write(tmp_path, files), **options)
    return read, " ".join(read.notes).replace(f"{tmp_path}/", "")


def test_read_runs_has_no_notes_on_ordinary_runs(tmp_path):
    read, notes = notes_of(tmp_path, RUNS)
    assert notes == "" and read.num_files == 2
    assert read.tasks.lengths.tolist() == [3, 2]


def test_read_runs_takes_rows_without_a_value_as_failed(tmp_path):
    files = {**edited("a.csv", "tanh,2", "tanh,"), "c.csv": "x,act,y\n1,,\n,,\n2,relu,\n"}
    read, notes = notes_of(tmp_path, files)
    assert notes == (
        "3 rows have no value (a.csv, row 3, c.csv, row 2, c.csv, row 4): left out, as failed "
        "or still to come. One run has no value at all (c): left out."
    )
    assert read.tasks.run(0)[1].tolist() == [1, 3] and read.names_of_runs == ["a", "b"]


LAB = """date;operator;when;temp;comment;remark;yield [%]
2026-10-01;Anna;08:15;20,5;;;1,5
2026-10-01;Anna;09:30;30,5;;spilled;2,5
2026-10-01;Anna;11:00;25,0;;;2,0
"""


def test_read_runs_leaves_out_readings_that_most_files_lack(tmp_path):
    files = {f"{name}.csv": "x,y\n0.1,1\n0.2,2\n0.4,3\n" for name in "abc"}
    # A run file of `suggest`, with a column that the user has added.
    files["run.csv"] = "x,y,humidity\n0.1,1,\n0.2,2,41\n0.3,4,43.5\n"
    note = (
        "The column 'humidity' is in a few of the files only: left out; if it is a dimension, add "
        "it to the others."
    )
    paths = write(tmp_path, files)
    read = read_runs(paths)
    assert read.space.names == ("x",) and note in read.notes
    given = read_runs(paths, space=Space(x=Real(0, 1)))
    assert len(given.tasks) == 4 and note in given.notes


def test_read_runs_leaves_out_what_says_something_beside_the_point(tmp_path):
    other = LAB.replace("2026-10-01", "2026-10-02").replace("Anna", "Ben")
    files = {"a.csv": LAB, "b.csv": other}
    # Written by `suggest`, and a remark put beside it.
    files["run.csv"] = "temp,yield [%],bench\n21.5,1.75,the left one\n22,,\n23,failed,cold\n24,2,\n"
    read, notes = notes_of(tmp_path, files)
    assert read.space == Space(temp=Real(20.5, 30.5))
    assert read.tasks.lengths.tolist() == [3, 3, 2]
    assert read.tasks.names == ("a", "b", "run")
    assert (read.tasks.quantity.name, read.tasks.quantity.unit) == ("yield [%]", "%")
    for note in (
        "Numbers in a.csv, b.csv are read with decimal commas.",
        "The column 'comment' is empty: left out.",
        "The column 'remark' holds remarks on some of the rows: left out.",
        "The column 'when' holds dates or times: left out.",
        "The column 'date' is not in all of the files, and never changes within a run: left out.",
        "The column 'operator' is not in all of the files, and never",
        "The column 'bench' holds text, and is in a few of the files only: left out.",
        "2 rows have no value (run.csv, row 3, run.csv, row 4): left out, as failed or still",
    ):
        assert note in notes, note


def test_read_runs_goes_beyond_the_data_only_when_asked_and_says_so(tmp_path):
    files = {name: "x,y\n1.5,1\n2.5,2\n" for name in ("a.csv", "b.csv")}
    read, notes = notes_of(tmp_path, files)
    assert read.space == Space(x=Real(1.5, 2.5)) and "bounds" not in notes
    read, notes = notes_of(tmp_path, files, bounds="wider")
    assert read.space == Space(x=Real(1.45, 2.55))
    assert "x: the bounds, 1.45 to 2.55, go beyond the data, 1.5 to 2.5 (--bounds wider)" in notes
    with pytest.raises(ValueError, match="Unknown bounds 'all'; give 'data'"):
        read_runs(write(tmp_path, files), bounds="all")


def test_read_runs_keeps_repeated_rows(tmp_path):
    files = {**RUNS, "c.csv": "x,act,y\n1,relu,1\n1,relu,2\n1,relu,1\n"}
    read, notes = notes_of(tmp_path, files)
    assert notes == "One row repeats an earlier row of the same run (c.csv, row 4); kept."
    assert read.tasks.lengths.tolist() == [3, 2, 3]


def test_read_runs_keeps_runs_of_identical_values(tmp_path):
    same = "".join(f"{i / 1000 + 0.5},relu,0.5\n" for i in range(2000))
    read, notes = notes_of(tmp_path, {**RUNS, "c.csv": f"x,act,y\n{same}"})
    assert notes == "The value never changes in one run (c); kept, but of little use."
    assert read.tasks.lengths.tolist() == [3, 2, 2000]


def test_read_runs_notes_a_run_of_another_scale(tmp_path):
    files = {**RUNS, "c.csv": "x,act,y\n1,relu,1e6\n2,relu,5e6\n"}
    _, notes = notes_of(tmp_path, files)
    assert notes == (
        "The values of run c (c.csv) are about 1e+06 times as large as those of the others: check "
        "that they have the same unit."
    )


def test_read_runs_notes_a_counter_among_the_columns(tmp_path):
    files = {
        "a.csv": "trial,x,y\n0,3,1\n1,7,2\n2,1,3\n",
        "b.csv": "trial,x,y\n0,4,1\n1,7,2\n2,2,3\n",
    }
    _, notes = notes_of(tmp_path, files)
    assert "The column 'trial' counts up by one in every run" in notes and "'x'" not in notes
    read, notes = notes_of(tmp_path, files, ignore=["trial"])
    assert notes == "" and read.space.names == ("x",)


def test_read_runs_notes_a_loss_that_is_maximised(tmp_path):
    files = {name: content.replace("y\n", "Loss\n") for name, content in RUNS.items()}
    _, notes = notes_of(tmp_path, files)
    assert notes.startswith("The value is called 'Loss' and is maximised: if smaller is better")
    read, notes = notes_of(tmp_path, files, direction="minimize")
    assert notes == "" and read.tasks.direction == "minimize"
    assert read.tasks.y[0, :3].tolist() == [-1, -2, -3]


# What is wrong is refused.

SPACE = Space(x=Real(0, 2.6), act=Categorical(["relu", "tanh"]))


@pytest.mark.parametrize(
    ("files", "options", "problem"),
    [
        (
            edited("b.csv", "0.25", ""),
            {},
            "b.csv, row 2, column 'x': the cell is empty; fill it, or remove the row; if it exists "
            "only under a condition, say so with `when` in a space file.",
        ),
        (
            edited("b.csv", "0.25,tanh", ","),
            {"space": SPACE},
            "b.csv, row 2, column 'x': the cell is empty; fill it, or remove the row.",
        ),
        (
            edited("b.csv", "0.25", "wide"),
            {},
            "b.csv, row 2, column 'x': 'wide' is not a number, and most cells of the column are "
            "numbers; repair it, or declare the column as categorical in a space file.",
        ),
        (
            edited("a.csv", "1.5", "wide"),
            {"space": SPACE},
            "a.csv, row 3, column 'x': received 'wide', which is not a number; repair the cell or "
            "remove the row.",
        ),
        (
            edited("b.csv", "relu", "3"),
            {},
            "b.csv, row 3, column 'act': '3' is a number, and most cells of the column are text; "
            "repair it, or declare the column as categorical in a space file.",
        ),
        (
            edited("b.csv", "2.75,relu", "1.75,elu"),
            {"space": SPACE},
            "b.csv, row 3, column 'act': received 'elu', which is none of the choices ['relu', "
            "'tanh']; add it to the dimension or drop the point.",
        ),
        (
            RUNS,
            {"space": SPACE},
            "b.csv, row 3, column 'x': received 2.75, which is outside [0.0, 2.6]; widen the "
            "dimension or drop the point.",
        ),
        (
            RUNS,
            {"space": Space(x=Integer(0, 3), act=Categorical(["relu", "tanh"]))},
            "a.csv, row 2, column 'x': received 0.5, which is not an integer; round it.",
        ),
        (
            edited("b.csv", "4", "nan"),
            {},
            "b.csv, row 2, column 'y': received 'nan', which is not a finite number; repair it, or "
            "leave the cell empty if the evaluation failed.",
        ),
        (edited("b.csv", "5\n", "-inf\n"), {}, "b.csv, row 3, column 'y': received '-inf', which"),
        (edited("b.csv", "5\n", "1e999\n"), {}, "b.csv, row 3, column 'y': received '1e999', whi"),
        (
            RUNS | {"c.csv": "x,y\n1,2\n"},
            {},
            "c.csv has no column 'act', which a.csv has; add it, or leave one of the files out.",
        ),
        (
            RUNS | {f"{name}.csv": "x,act,z,y\n1,relu,2,3\n2,tanh,4,3\n" for name in "cd"},
            {},
            "c.csv has the column 'z', which a.csv lacks; remove it, or leave it out with "
            "--ignore (ignore=... in Python).",
        ),
        (
            RUNS | {"c.csv": "x,act,auc\n1,relu,2\n"},
            {},
            "c.csv has no column 'y' for the value, which a.csv has; add it, or name one of 'x', "
            "'act', 'auc' with --value (value=... in Python).",
        ),
        (
            RUNS,
            {"space": Space(x=Real(0, 9), depth=Integer(1, 2))},
            "a.csv has no column 'depth', which is a dimension of the space; add it, or remove the "
            "dimension.",
        ),
        (
            RUNS,
            {"space": Space(x=Real(0, 9))},
            "a.csv has the column 'act', which is not in the space; add it to the space, or leave "
            "it out with --ignore (ignore=... in Python).",
        ),
        (
            RUNS,
            {"value": "acc"},
            "a.csv has no column 'acc' for the value; add it, or name one of 'x', 'act', 'y' with "
            "--value (value=... in Python).",
        ),
        (
            RUNS,
            {"task": "dataset"},
            "No file has a column 'dataset'; name one of those in a.csv: 'x', 'act', 'y'.",
        ),
        (
            RUNS,
            {"ignore": ["x" * 5000]},
            "No file has a column 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ),
        (RUNS, {"ignore": ["when"]}, "No file has a column 'when'; name one of those in a.csv"),
        (RUNS, {"value": "x", "task": "x"}, "The column 'x' is both --value and --task; name two"),
        (
            RUNS,
            {"value": "x", "space": SPACE},
            "The column 'x' is named by --value and by the space; name it in one place.",
        ),
        (
            {"a.csv": "x,Score,y\n1,2,3\n"},
            {},
            "a.csv: 'Score', 'y' could each be the value; say which with --value",
        ),
        (
            {"a.csv": "study,run,x,y\na,b,2,3\n"},
            {},
            "a.csv: 'study', 'run' could each name the run; say which with --task",
        ),
        (
            {"a.csv": "task,x,y\nA,1,2\n,2,3\n"},
            {},
            "a.csv, row 3, column 'task': the cell is empty; name the run that the row belongs to.",
        ),
        ({"a.csv": "x,act\nlow,b\n"}, {}, "a.csv has no column of numbers for the value; say whi"),
        ({"a.csv": "y\n1\n", "b.csv": "y\n2\n"}, {}, "a.csv has no column besides the value; add"),
        (
            {"a.csv": "x,y\n1,1\n1,2\n", "b.csv": "x,y\n1,1\n1,2\n"},
            {},
            "No column of the 2 runs changes besides the value (x stay the same)",
        ),
        (
            {"a.csv": RUNS["a.csv"]},
            {},
            "Learning a prior needs at least 2 runs with values, received 1 in 1 file(s); give one "
            "file per run, or name the run of each row in a column called 'task'.",
        ),
        (
            {"a.csv": RUNS["a.csv"], "b.csv": "x,act,y\n1,relu,\n"},
            {},
            "Learning a prior needs at least 2 runs with values, received 1 in 2 file(s)",
        ),
        (
            {"a.csv": "x,y\n1,5\n2,5\n", "b.csv": "x,y\n1,7\n3,7\n", "c.csv": "x,y\n1,2\n"},
            {},
            "The value never changes within any of the 3 runs (first: a.csv, row 2), so there "
            "is nothing to learn; check that the right column is the value.",
        ),
        ({**RUNS, "c.csv": ""}, {}, "c.csv is empty; remove it"),
        (RUNS, {"direction": "up"}, "Unknown direction 'up'; give 'maximize' or 'minimize'."),
    ],
)
def test_read_runs_names_file_row_and_column_of_bad_input(tmp_path, files, options, problem):
    paths = write(tmp_path, files)
    with pytest.raises(ValueError) as raised:
        read_runs(paths, **options)
    message = str(raised.value).replace(f"{tmp_path}/", "")
    assert message.startswith(problem), message
    assert "\n" not in message and message.endswith(".")


def test_read_runs_reads_the_files_in_the_docs(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "csv.md").read_text()
    one, several = re.findall(r"```csv\n(.*?)```", page, re.DOTALL)
    (space,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    one_file, several_file = write(tmp_path, {"one.csv": one, "several.csv": several})
    (tmp_path / "space.toml").write_text(space)
    read = read_runs([one_file, several_file], space=read_space(tmp_path / "space.toml"))
    assert read.names_of_runs == ["one", "monday", "tuesday"]
    assert read.value == "auc" and read.tasks.lengths.tolist() == [2, 2, 2]
