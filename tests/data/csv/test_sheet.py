"""One CSV file: delimiters, quotes, encodings, and every way in which a file can be no table."""

import os

import pytest

from metaprior.data.csv._paths import csv_files
from metaprior.data.csv._sheet import read_sheet


def sheet_of(tmp_path, content, name="a.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_sheet(path)


PLAIN = {"x": ["1", "3"], "name": ["a", "b c"], "y": ["2.5", ""]}


@pytest.mark.parametrize(
    "content",
    [
        "x,name,y\n1,a,2.5\n3,b c,\n",
        "x,name,y\r\n1,a,2.5\r\n3,b c,\r\n",
        "x,name,y\r1,a,2.5\r3,b c,\r",
        b"\xef\xbb\xbfx,name,y\n1,a,2.5\n3,b c,\n",
        "x;name;y\n1;a;2.5\n3;b c;\n",
        "x\tname\ty\n1\ta\t2.5\n3\tb c\t\n",
        "x|name|y\n1|a|2.5\n3|b c|\n",
        '"x", "name","y"\n "1", a ,2.5\n3,"b c",""\n',
        "x,name,y,\n1,a,2.5,\n3,b c,,\n",
        "x,name,y\n1,a,2.5,\n3,b c,,,\n",
        "x;name;y\n1;a;2,5\n3;b c;\n",
        ",x,name,y\n0,1,a,2.5\n1,3,b c,\n",
    ],
)
def test_read_sheet_gives_the_same_cells_in_every_dialect(tmp_path, content):
    sheet = sheet_of(tmp_path, content)
    assert sheet.columns == PLAIN
    assert sheet.rows == [2, 3]


def test_read_sheet_counts_rows_as_a_spreadsheet_does(tmp_path):
    sheet = sheet_of(tmp_path, '\nx,y\n1,"two\nlines"\n\n,,\n4,5\n')
    assert sheet.rows == [3, 6]
    assert sheet.columns == {"x": ["1", "4"], "y": ["two\nlines", "5"]}


def test_read_sheet_notes_what_was_done_to_a_file(tmp_path):
    assert sheet_of(tmp_path, "x,y\n1,2\n").notes == []
    assert sheet_of(tmp_path, "x;y\n1;2,5\n").decimal_commas
    (note,) = sheet_of(tmp_path, ",x,y\n1,5,6\n2,7,8\n").notes
    assert "has no name and counts rows" in note


def test_read_sheet_keeps_commas_where_fractions_have_points(tmp_path):
    sheet = sheet_of(tmp_path, "x;y\n1,5;2.5\n")
    assert sheet.columns == {"x": ["1,5"], "y": ["2.5"]}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", " is empty; remove it, or write a header and rows into it."),
        (" \n,,\n\n", " is empty; remove it, or write a header and rows into it."),
        ("x,y\n", " has a header and no rows; remove it, or add its points."),
        ("x,y,x\n1,2,3\n", ", row 1: two columns are called 'x'; rename one."),
        ("x,,y\n1,2,3\n", ", row 1: column 2 has no name; name it or remove it."),
        (",x,y\n7,2,3\n", ", row 1: column 1 has no name; name it."),
        ("0.1,2,3\n0.2,2,3\n", ", row 1: the header consists of numbers; begin the file with"),
        ("x,y\n1,2\n3\n", ", row 3: the row has 1 cells and the header 2; repair the row"),
        ("x,y\n1,2,3\n", ", row 2: the row has 3 cells and the header 2; repair the row"),
        ('x,y\n1,2\n"3,4\n5,6\n', ", row 3: the row cannot be read as CSV"),
        ('x,y\n1,"2"3\n', ", row 2: the row cannot be read as CSV"),
        (b"x,y\n1,2\n\xe4,3\n", ", row 3: byte 0xe4 is not UTF-8; save the file as CSV in UTF-8."),
        ("x,y\n1,2\n".encode("utf-16"), " is not a text file in UTF-8 (it holds zero bytes)"),
        (
            ",".join(map("c{}".format, range(2001))) + "\n",
            " has 2,001 columns, and at most 2,000 are",
        ),
        (b"PK\x03\x04\0\0", " is not a text file in UTF-8 (it holds zero bytes)"),
    ],
)
def test_read_sheet_refuses_a_file_that_is_not_a_table(tmp_path, content, problem):
    with pytest.raises(ValueError) as raised:
        sheet_of(tmp_path, content)
    message = str(raised.value)
    assert message.startswith(f"{tmp_path / 'a.csv'}{problem}"), message
    assert "\n" not in message


def test_read_sheet_takes_any_number_of_separators_at_the_end_of_lines(tmp_path):
    more = "," * 50_000
    sheet = sheet_of(tmp_path, f"x,y{more}\n1,2{more}\n3,4\n")
    assert sheet.columns == {"x": ["1", "3"], "y": ["2", "4"]}


def test_read_sheet_names_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match="none.csv cannot be read: no such file or directory; "):
        read_sheet(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="is a folder where a CSV file was expected"):
        read_sheet(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_read_sheet_names_a_file_without_permission(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n")
    path.chmod(0)
    with pytest.raises(ValueError, match="a.csv cannot be read: permission denied; "):
        read_sheet(path)


# Which files are meant.


@pytest.fixture
def folder(tmp_path):
    for name in ("b.csv", "a.csv", "C.CSV", "notes.txt", "[d].csv", ".lock.csv"):
        (tmp_path / name).write_text("x,y\n1,2\n")
    (tmp_path / "e.csv").mkdir()
    return tmp_path


def test_csv_files_expands_folders_patterns_and_names(folder):
    def names(*sources):
        return [path.name for path in csv_files(sources)]

    assert names(folder) == ["C.CSV", "[d].csv", "a.csv", "b.csv"]
    assert names(folder / "[ab].csv") == ["a.csv", "b.csv"]
    assert names(folder / "[d].csv") == ["[d].csv"]
    assert names(folder / "b.csv", str(folder / "*.csv")) == ["b.csv", "[d].csv", "a.csv"]
    assert names(folder / "none.csv") == ["none.csv"]
    assert csv_files(str(folder / "a.csv")) == [folder / "a.csv"]


def test_csv_files_refuses_sources_without_files(folder):
    with pytest.raises(ValueError, match=r"No file matches .*\*.tsv; check the pattern."):
        csv_files([folder / "*.tsv"])
    with pytest.raises(ValueError, match="There is no CSV file in the folder .*e.csv; "):
        csv_files([folder / "e.csv"])
    with pytest.raises(ValueError, match="Received no files of past runs; "):
        csv_files([])
