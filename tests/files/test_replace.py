"""Replacing files: all or nothing, and nothing left beside them."""

import os

import pytest

from metaprior.files import remove_partial, replace_file


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


def test_replace_file_leaves_the_umask_of_other_threads_alone(tmp_path, monkeypatch):
    def changed(mask):
        raise AssertionError("a thread that makes a file now would get another umask")

    monkeypatch.setattr(os, "umask", changed)
    replace_file(tmp_path / "new", b"new")
    assert (tmp_path / "new").read_bytes() == b"new"


def test_replace_file_never_shows_a_private_file(tmp_path, monkeypatch):
    path, sync, modes = tmp_path / "a", os.fsync, []
    path.touch(0o600)

    def look(number):
        modes.append(os.fstat(number).st_mode & 0o077)
        sync(number)

    monkeypatch.setattr(os, "fsync", look)
    replace_file(path, b"secret")
    assert modes[0] == 0 and path.stat().st_mode & 0o777 == 0o600


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


def test_replace_file_removes_what_a_killed_writer_left(tmp_path):
    left, other = tmp_path / ".a-12345678.partial", tmp_path / ".b-12345678.partial"
    for path in (left, other):
        path.write_bytes(b"half")
    replace_file(tmp_path / "a", b"new")
    assert names(tmp_path) == [other.name, "a"]
    remove_partial(tmp_path)
    assert names(tmp_path) == ["a"]


def test_remove_partial_leaves_what_is_being_written(tmp_path, monkeypatch):
    sync = os.fsync

    def look(number):
        before = names(tmp_path)
        remove_partial(tmp_path)
        assert names(tmp_path) == before
        sync(number)

    monkeypatch.setattr(os, "fsync", look)
    replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_replace_file_writes_again_if_its_file_was_taken_for_litter(tmp_path, monkeypatch):
    rename, calls = os.replace, []

    def first_is_gone(source, target):
        calls.append(target)
        if len(calls) == 1:
            os.unlink(source)
        rename(source, target)

    monkeypatch.setattr(os, "replace", first_is_gone)
    replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new" and len(calls) == 2
    assert names(tmp_path) == ["a"]


def test_replace_file_takes_the_place_of_no_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"pipe cannot be written \(not a plain file\)"):
        replace_file(tmp_path / "pipe", b"new")
    assert (tmp_path / "pipe").is_fifo() and names(tmp_path) == ["pipe"]
