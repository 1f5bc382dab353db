"""Records of the benchmarks: a job that is in the file is not done again."""

from typing import NamedTuple

from benchmarks._records import finished, read


class Square(NamedTuple):
    name: str
    number: int


def no_result(job):
    raise AssertionError(f"{job} was done again")


def test_finished_keeps_what_is_in_the_file_and_drops_a_broken_line(tmp_path):
    out = tmp_path / "records.jsonl"
    whole = '[["a", 2], 4]\n[["b", 3], 9]\n'
    out.write_text(whole + '[["c", 4], ')
    jobs = [Square("b", 3), Square("a", 2)]
    assert finished(no_result, jobs, 1, out) == {("b", 3): 9, ("a", 2): 4}
    assert out.read_text() == whole


def test_read_finds_nothing_where_no_file_is(tmp_path):
    assert read(tmp_path / "records.jsonl") == {}
