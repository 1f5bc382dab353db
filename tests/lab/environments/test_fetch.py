"""Downloading the original tables from a server on this machine, in good and in bad weather."""

import os
import socket

import pytest

from metaprior.lab.environments import download, remote_tables
from tests.lab.environments.figshare_server import FILES, figshare


@pytest.fixture
def served():
    with figshare() as served:
        yield served


def files_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_download_is_whole_and_not_repeated(served, tmp_path):
    tables = remote_tables(served.url)
    assert [table.learner for table in tables] == ["glmnet", "rpart", "xgboost"]
    fractions = []
    for table in tables:
        path = download(table, tmp_path / "new" / "folder", on_progress=fractions.append)
        assert path.read_bytes() == FILES[table.file_name]
    assert files_in(tmp_path / "new" / "folder") == FILES
    assert fractions.count(1.0) == 3 and len(fractions) > 6  # in pieces
    asked = len(served.asked)
    for table in tables:
        download(table, tmp_path / "new" / "folder")
    assert len(served.asked) == asked == 4


def test_download_replaces_a_damaged_or_foreign_file(served, tmp_path):
    table = remote_tables(served.url)[0]
    (tmp_path / table.file_name).write_bytes(b"half of it")
    download(table, tmp_path)
    assert (tmp_path / table.file_name).read_bytes() == FILES[table.file_name]


def test_download_with_a_wrong_checksum_leaves_nothing_behind(served, tmp_path):
    served.pages["/" + list(FILES)[0]] = FILES[list(FILES)[0]][:-1]
    table = remote_tables(served.url)[0]
    before = tmp_path / table.file_name
    before.write_bytes(b"old")
    with pytest.raises(ValueError, match="arrived damaged: 1399999 bytes .* instead of 1400000"):
        download(table, tmp_path)
    assert files_in(tmp_path) == {table.file_name: b"old"}


def test_download_explains_errors_of_the_server(served, tmp_path):
    table = remote_tables(served.url)[0]
    del served.pages["/" + table.file_name]
    with pytest.raises(ValueError, match="answered 404 Not Found; try again later"):
        download(table, tmp_path)
    assert files_in(tmp_path) == {}


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b"{}", b'{"files": [{"name": 1}]}', b"\xff"])
def test_remote_tables_explains_an_answer_that_is_no_article(served, answer):
    served.pages["/article"] = answer
    with pytest.raises(ValueError, match="does not list the tables as expected"):
        remote_tables(served.url)


def test_remote_tables_explains_an_unreachable_server():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ValueError, match=f"Cannot reach {url} .*refused.*check the network"):
        remote_tables(url)
    with pytest.raises(ValueError, match="cannot be downloaded; give an http or https"):
        remote_tables("file:///etc/hostname")


def test_download_explains_a_folder_that_cannot_be_written(served, tmp_path):
    table = remote_tables(served.url)[0]
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ValueError, match="Cannot write .*; make room or name another folder"):
        download(table, tmp_path / "file")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_download_explains_a_full_disk(served, tmp_path):
    table = remote_tables(served.url)[0]
    (tmp_path / f".{table.file_name}.part").symlink_to("/dev/full")
    with pytest.raises(ValueError, match="No space left on device; make room"):
        download(table, tmp_path)
    assert files_in(tmp_path) == {}
