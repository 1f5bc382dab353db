"""The share of compiling: spans of time that overlap count once."""

import pytest

from benchmarks._training import covered


@pytest.mark.parametrize(
    ("spans", "length"),
    [
        ([], 0.0),
        ([(1.0, 3.0)], 2.0),
        ([(4.0, 5.0), (1.0, 3.0)], 3.0),
        # A trace within a trace, which ends first, and one that begins within another.
        ([(2.0, 3.0), (1.0, 4.0)], 3.0),
        ([(1.0, 4.0), (2.0, 3.0), (3.5, 6.0)], 5.0),
    ],
)
def test_covered_counts_every_moment_once(spans, length):
    assert covered(spans) == pytest.approx(length)
