"""Reading what may be anything: no hang, no recursion, and JSON that says each thing once."""

import json
import os
import time

import pytest

from metaprior.files import parse_json, read_file


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 100_000, "nested more than 60 levels deep"),
        ("[" * 70 + "]" * 70, "nested more than 60 levels deep"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "names 'c' twice"),
        ("9" * 400, "a whole number of 400 digits"),
        ('{"a": -' + "9" * 5000 + "}", "a whole number of 5001 digits"),
        ('{"a"', "Expecting"),
    ],
)
def test_parse_json_refuses_what_a_careful_writer_does_not_write(text, problem):
    with pytest.raises(ValueError, match=problem):
        parse_json(text.encode())


@pytest.mark.parametrize("text", ["null", "3", '{"a": [1, {"b": null}]}', "[" * 60 + "]" * 60])
def test_parse_json_reads_the_rest(text):
    assert parse_json(text.encode()) == json.loads(text)


def test_read_file_does_not_wait_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    started = time.monotonic()
    with pytest.raises(OSError, match="Not a plain file"):
        read_file(tmp_path / "pipe")
    assert time.monotonic() - started < 1.0
    with pytest.raises(IsADirectoryError):
        read_file(tmp_path)
