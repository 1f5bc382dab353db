"""Replacing files and folders: all or nothing, and nothing left beside them."""

import os

import pytest

from metaprior.files import replace_file, replace_folder


def fail(*args, **kwargs):
    raise OSError(28, "No space left on device")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_replace_file_keeps_the_mode(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert names(tmp_path) == ["a"]


def test_replace_file_gives_a_new_file_the_usual_mode(tmp_path):
    (tmp_path / "usual").touch()
    replace_file(tmp_path / "new", b"")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_replace_file_writes_through_a_link(tmp_path):
    (tmp_path / "target").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to("target")
    replace_file(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_replace_file_keeps_the_old_content_on_error(step, tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(ValueError, match=r"a cannot be written \(no space left on device\)"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_replace_folder_leaves_only_the_new_files(tmp_path):
    folder = tmp_path / "deep" / "prior"
    replace_folder(folder, {"a": b"1", "b": b"2"})
    replace_folder(folder, {"b": b"3"})
    assert names(folder) == ["b"]
    assert (folder / "b").read_bytes() == b"3"
    assert names(folder.parent) == ["prior"]


def test_replace_folder_keeps_the_old_folder_if_a_file_cannot_be_written(tmp_path):
    folder = tmp_path / "prior"
    replace_folder(folder, {"a": b"old"})
    with pytest.raises(OSError):
        replace_folder(folder, {"a": b"new", "missing/b": b"new"})
    assert (folder / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["prior"]


def test_replace_folder_puts_the_old_folder_back_if_the_last_step_fails(tmp_path, monkeypatch):
    folder = tmp_path / "prior"
    replace_folder(folder, {"a": b"old"})
    rename, calls = os.replace, []

    def second_fails(source, target):
        calls.append(target)
        if len(calls) == 2:
            fail()
        rename(source, target)

    monkeypatch.setattr(os, "replace", second_fails)
    with pytest.raises(OSError):
        replace_folder(folder, {"a": b"new"})
    assert len(calls) == 3
    assert (folder / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["prior"]
