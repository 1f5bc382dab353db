"""Columns of CSV files that never change within a run: features of tasks, and no dimensions."""

import numpy as np
import pytest

import metaprior as mp
from metaprior.data.csv import read_run, read_runs, read_space, write_space

RUNS = {
    "a.csv": "x,day,size,y\n0.1,mon,10,1\n0.5,mon,10,2\n",
    "b.csv": "x,day,size,y\n0.9,tue,20,3\n0.3,tue,20,1\n",
    "c.csv": "x,day,size,y\n0.2,wed,,3\n0.7,wed,,2\n",
}
SPACE = mp.Space(x=mp.Real(0.0, 1.0))


def write(folder, files):
    for name, text in files.items():
        (folder / name).write_text(text)
    return [folder / name for name in files]


def test_read_runs_makes_no_dimension_of_what_never_changes_within_a_run(tmp_path):
    read = read_runs(write(tmp_path, RUNS), ignore=["size"])
    assert read.space.names == ("x",)
    (note,) = read.notes
    assert note.startswith("The column 'day' never changes within a run, only between runs")
    assert "--feature day" in note
    # The space that was inferred reads the same files again.
    space = read_space(write_space(read.space, tmp_path / "space.toml"))
    again = read_runs(tmp_path / "*.csv", space=space, ignore=["size"])
    np.testing.assert_array_equal(again.tasks.x, read.tasks.x)


def test_read_runs_makes_no_dimension_of_dates_that_are_too_many_to_be_choices(tmp_path):
    files = {f"{i}.csv": f"x,date,y\n0.1,d{i},1\n0.{i},d{i},2\n" for i in range(2, 70)}
    assert read_runs(write(tmp_path, files)).space.names == ("x",)


def test_read_runs_still_takes_columns_of_single_points_for_dimensions(tmp_path):
    texts = {"a.csv": "0.1,3,1", "b.csv": "0.9,4,2", "c.csv": "0.5,9,2"}
    files = {name: f"x,z,y\n{row}\n" for name, row in texts.items()}
    assert read_runs(write(tmp_path, files)).space.names == ("x", "z")


def test_read_runs_gives_features_to_the_tasks(tmp_path):
    read = read_runs(write(tmp_path, RUNS), features=["size", "day"], value_bounds=(0, 5))
    assert read.space.names == ("x",) and not read.notes
    expected = (
        {"size": 10, "day": "mon"},
        {"size": 20, "day": "tue"},
        {"size": None, "day": "wed"},
    )
    assert read.tasks.feature_values == expected
    assert read.tasks.value_bounds == (0.0, 5.0)


def test_read_runs_takes_features_from_a_file_of_several_runs_and_allows_files_without(tmp_path):
    files = {
        "many.csv": "task,x,wet,y\nr1,0.1,true,1\nr2,0.2,false,1\nr1,0.3,true,2\nr2,0.4,false,3\n",
        "one.csv": "x,y\n0.1,1\n0.2,5\n",
    }
    read = read_runs(write(tmp_path, files), features=["wet"])
    assert read.names_of_runs == ["r1", "r2", "one"]
    assert [each["wet"] for each in read.tasks.feature_values] == [True, False, None]


@pytest.mark.parametrize(
    "files, options, problem",
    [
        (
            {**RUNS, "b.csv": "x,day,size,y\n0.9,tue,20,3\n0.3,tue,21,1\n"},
            {"features": ["size"]},
            "b.csv, row 3, column 'size': received '21' after '20' in the same run; a task feature",
        ),
        (
            {**RUNS, "b.csv": "x,day,size,y\n0.9,tue,big,3\n0.3,tue,big,1\n"},
            {"features": ["size"]},
            "b.csv, row 2, column 'size': the task feature is 'big', and other runs have numbers",
        ),
        (RUNS, {"features": ["colour"]}, "No file has a column 'colour'; name one of those in a.c"),
        (
            RUNS,
            {"features": ["size"], "ignore": ["size"]},
            "The column 'size' is named by --feature and by --ignore; name it in one place.",
        ),
        (
            RUNS,
            {"features": ["x"], "space": SPACE},
            "The column 'x' is named by --feature and by the space; name it in one place.",
        ),
        (
            RUNS,
            {"features": ["day", "size"], "value_bounds": (0, 2)},
            "b.csv, row 2, column 'y': received 3, which is not between the bounds 0 and 2",
        ),
    ],
)
def test_read_runs_names_file_row_and_column_of_bad_features(tmp_path, files, options, problem):
    paths = write(tmp_path, files)
    with pytest.raises(ValueError) as raised:
        read_runs(paths, **options)
    message = str(raised.value).replace(f"{tmp_path}/", "")
    assert message.startswith(problem), message


def test_read_runs_with_a_space_refuses_other_columns_that_change_within_runs(tmp_path):
    files = {"a.csv": "x,z,y\n0.1,1,1\n0.2,2,2\n", "b.csv": "x,z,y\n0.1,1,3\n0.2,1,4\n"}
    with pytest.raises(ValueError, match="has the column 'z', which is not in the space"):
        read_runs(write(tmp_path, files), space=SPACE)


def test_run_file_begins_with_columns_of_features_and_repeats_them(tmp_path):
    path = tmp_path / "run.csv"
    run = read_run(path, SPACE, features=["size", "wet"]).about({"size": 12.5, "wet": True})
    run = run.append([{"x": 0.5}]).append([{"x": 0.25}])
    assert path.read_text() == "x,value,size,wet\n0.5,,12.5,true\n0.25,,12.5,true\n"
    assert run.features == {"size": 12.5, "wet": True}
    filled = read_run(path, SPACE, features=["size", "wet"]).fill(2, 3.0)
    assert filled.features == {"size": 12.5, "wet": True}
    assert [row.value for row in filled.rows] == [3.0, None]
    # What was said stays said.
    assert run.about({"size": 12.5}).features == run.features
    with pytest.raises(ValueError, match="says that the feature 'size' is 12.5, and --feature"):
        run.about({"size": 13})
    # To a prior without features these columns are the user's own, and they stay.
    read_run(path, SPACE).fill(3, 4.0)
    assert path.read_text() == "x,value,size,wet\n0.5,3,12.5,true\n0.25,4,12.5,true\n"


def test_run_file_that_has_begun_without_a_feature_says_what_to_do(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("x,value\n0.5,1\n")
    with pytest.raises(ValueError, match="has begun without the feature 'size'; add a column"):
        read_run(path, SPACE, features=["size"]).about({"size": 3})


def test_run_file_takes_features_where_their_cells_are_empty(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("x,size,value\n0.5,,1\n")
    run = read_run(path, SPACE, features=["size"]).about({"size": 3})
    assert run.append([{"x": 0.7}]).features == {"size": 3}
    assert path.read_text() == "x,size,value\n0.5,,1\n0.7,3,\n"


def test_run_file_keeps_its_header_where_only_the_features_are_missing(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("x,size,value\n0.5,7,1\n0.6,,\n")
    run = read_run(path, SPACE, features=["size"])
    assert run.features == {"size": 7}
    assert run.append([{"x": 0.7}]).header == ["x", "size", "value"]
    assert path.read_text().splitlines()[-1] == "0.7,7,"
    path.write_text("x,size,value\n0.5,7,1\n0.6,8,2\n")
    with pytest.raises(
        ValueError, match="row 3, column 'size': received '8' after '7' in the same"
    ):
        read_run(path, SPACE, features=["size"])
