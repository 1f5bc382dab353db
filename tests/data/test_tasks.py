"""Tasks: padding, signs, going back to runs, joining, and every bad run."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.data._space import Categorical, Integer, Real, Space
from metaprior.data._tasks import Tasks, padded_length

SPACE = Space(lr=Real(1e-4, 1, log=True), depth=Integer(1, 5), act=Categorical(["relu", "tanh"]))
LINE = Space(x=Real(0, 10))
FIRST = ([{"lr": 1e-2, "depth": 3, "act": "tanh"}, {"lr": 1.0, "depth": 1, "act": "relu"}], [2, -1])
SECOND = ([{"lr": 1e-4, "depth": 5, "act": "relu"}], np.array([0.5]))


def lines(*lengths: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(np.linspace(0, 10, m), np.arange(1.0, m + 1)) for m in lengths]


@pytest.mark.parametrize(
    ("length", "padded"),
    [(0, 4), (1, 4), (4, 4), (5, 8), (10, 12), (20, 20), (33, 36), (63, 64), (100, 104)]
    + [(128, 128), (129, 144), (1000, 1024), (1025, 1152)],
)
def test_padded_length_by_hand(length, padded):
    assert padded_length(length) == padded


def test_padded_length_gives_short_padding_and_few_shapes():
    lengths = range(1, 5000)
    padded = [padded_length(length) for length in lengths]
    assert padded == sorted(padded)
    assert all(0 <= p - m < max(4, m / 8) for p, m in zip(padded, lengths, strict=True))
    assert [padded_length(p) for p in padded] == padded
    assert len(set(padded)) < 80


def test_padded_length_refuses_a_negative_length():
    with pytest.raises(ValueError, match="-1"):
        padded_length(-1)


def test_tasks_runs_are_padded_and_masked():
    tasks = Tasks.from_runs([FIRST, SECOND], space=SPACE)
    assert tasks.x.shape == (2, 4, 4) and tasks.y.shape == tasks.mask.shape == (2, 4)
    np.testing.assert_allclose(tasks.x[0, :2], [[0.5, 0.5, 0, 1], [1, 0.1, 1, 0]], atol=1e-15)
    np.testing.assert_allclose(tasks.x[1, :1], [[0, 0.9, 1, 0]], atol=1e-15)
    assert tasks.y.tolist() == [[2, -1, 0, 0], [0.5, 0, 0, 0]]
    assert tasks.mask.tolist() == [[True, True, False, False], [True, False, False, False]]
    assert not tasks.x[~tasks.mask].any()
    assert tasks.lengths.tolist() == [2, 1]
    assert len(tasks) == tasks.num_tasks == 2
    assert tasks.capacity == 4


@settings(deadline=None, max_examples=50)
@given(
    runs=st.lists(
        # Values that are closer than float64 can compute with are refused.
        st.lists(
            st.tuples(st.floats(0, 10), st.floats(-1e9, 1e9).map(lambda y: round(y, 9))),
            min_size=1,
            max_size=40,
        ),
        min_size=1,
        max_size=6,
    ),
    direction=st.sampled_from(["maximize", "minimize"]),
)
def test_tasks_runs_come_back(runs, direction):
    pairs = [([x for x, _ in run], [y for _, y in run]) for run in runs]
    tasks = Tasks.from_runs(pairs, space=LINE, direction=direction)
    assert tasks.lengths.tolist() == [len(run) for run in runs]
    assert tasks.capacity == padded_length(max(len(run) for run in runs))
    for index, (x, y) in enumerate(pairs):
        points, values = tasks.run(index)
        np.testing.assert_allclose([point["x"] for point in points], x, rtol=1e-12, atol=1e-14)
        assert values.tolist() == y
        best = y.index(max(y) if direction == "maximize" else min(y))
        assert np.argmax(np.where(tasks.mask[index], tasks.y[index], -np.inf)) == best


def test_tasks_mixed_runs_come_back_exactly():
    tasks = Tasks.from_runs([FIRST, SECOND], space=SPACE, direction="minimize")
    assert tasks.y[0, :2].tolist() == [-2, 1]
    points, values = tasks.run(-1)
    assert points == SECOND[0] and values.tolist() == [0.5]
    points, values = tasks.run(0)
    assert [(p["depth"], p["act"]) for p in points] == [(3, "tanh"), (1, "relu")]
    assert values.tolist() == [2, -1]


def test_tasks_frames_and_series_are_runs_too():
    frame = pd.DataFrame(FIRST[0])
    tasks = Tasks.from_runs([(frame, pd.Series([2, -1])), SECOND], space=SPACE)
    expected = Tasks.from_runs([FIRST, SECOND], space=SPACE)
    np.testing.assert_array_equal(tasks.x, expected.x)
    np.testing.assert_array_equal(tasks.y, expected.y)


def test_tasks_runs_may_come_from_a_generator():
    assert len(Tasks.from_runs((run for run in lines(3, 2)), space=LINE)) == 2


def test_tasks_subset_keeps_the_shape_and_picks_the_rows():
    tasks = Tasks.from_runs(lines(9, 2, 5), space=LINE, direction="minimize")
    picked = tasks.subset([2, 1])
    assert picked.lengths.tolist() == [5, 2]
    assert picked.capacity == tasks.capacity == 12
    assert picked.direction == "minimize"
    np.testing.assert_array_equal(picked.y[0], tasks.y[2])
    assert tasks.subset(np.array([True, False, True])).lengths.tolist() == [9, 5]
    assert len(tasks.subset([1])) == 1
    assert tasks.subset([-1, -1]).lengths.tolist() == [5, 5]


@pytest.mark.parametrize(
    ("indices", "error", "message"),
    [
        ([0, 3], IndexError, "no task 3.*0 to 1"),
        ([-3], IndexError, "no task -3"),
        ([0.5], TypeError, "integers"),
        ([True], TypeError, "each of the 2 tasks"),
        (1, TypeError, "list of integers"),
    ],
)
def test_tasks_bad_indices_are_refused(indices, error, message):
    tasks = Tasks.from_runs(lines(1, 2), space=LINE)
    with pytest.raises(error, match=message):
        tasks.subset(indices)


def test_tasks_run_past_the_last_is_refused():
    with pytest.raises(IndexError, match="no task 2"):
        Tasks.from_runs(lines(1, 2), space=LINE).run(2)


def test_tasks_joining_pads_to_the_longer_capacity():
    short = Tasks.from_runs(lines(2, 3), space=LINE)
    long = Tasks.from_runs(lines(30), space=LINE)
    for joined, lengths in ((short + long, [2, 3, 30]), (long.join(short), [30, 2, 3])):
        assert joined.lengths.tolist() == lengths
        assert joined.capacity == 32
        for index, (x, y) in enumerate(lines(*lengths)):
            points, values = joined.run(index)
            np.testing.assert_allclose([point["x"] for point in points], x, atol=1e-13)
            np.testing.assert_array_equal(values, y)
        assert not joined.x[~joined.mask].any() and not joined.y[~joined.mask].any()


def test_only_like_tasks_can_be_joined():
    tasks = Tasks.from_runs(lines(2), space=LINE)
    with pytest.raises(ValueError, match="different spaces"):
        tasks.join(Tasks.from_runs(lines(2), space=Space(x=Real(0, 11))))
    with pytest.raises(ValueError, match="'maximize' and 'minimize'"):
        tasks.join(Tasks.from_runs(lines(2), space=LINE, direction="minimize"))
    with pytest.raises(TypeError):
        _ = tasks + 1  # pyright: ignore[reportOperatorIssue]


def test_several_tasks_are_required_only_where_asked_for():
    several = Tasks.from_runs(lines(2, 3), space=LINE)
    assert several.require_several() is several
    with pytest.raises(ValueError, match="nothing to transfer; give more runs, or use FittedGP"):
        several.subset([0]).require_several()


def test_tasks_cannot_be_changed():
    tasks = Tasks.from_runs(lines(2, 3), space=LINE)
    with pytest.raises(ValueError, match="read-only"):
        tasks.y[0, 0] = 1.0
    with pytest.raises(AttributeError):
        tasks.direction = "minimize"  # pyright: ignore[reportAttributeAccessIssue]


def test_tasks_building_from_arrays_leaves_them_writeable():
    x, y, mask = np.zeros((1, 4, 1)), np.zeros((1, 4)), np.ones((1, 4), bool)
    Tasks(LINE, x, y, mask)
    y[0, 0] = 1.0
    assert y[0, 0] == 1.0


def test_tasks_repr_is_short():
    text = repr(Tasks.from_runs(lines(2, 3), space=LINE, direction="minimize"))
    assert text == "Tasks(2 runs of 2 to 3 points, minimize, Space(x=Real(0.0, 10.0)))"


GOOD = ([1.0, 2.0], [0.0, 1.0])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (([1.0, 2.0], [0.0, math.nan]), "^task 1, row 1, y: received nan"),
        (([1.0, 2.0], [-math.inf, 0.0]), "^task 1, row 0, y: received -inf"),
        (([1.0, 2.0], [0.0, None]), "^task 1, row 1, y: received None"),
        (([1.0, 2.0], ["0", 1.0]), "^task 1, row 0, y: received '0'"),
        ((np.ones(2), np.array([0, np.nan])), "^task 1, row 1, y: received nan"),
        (([1.0, 11.0], [0.0, 1.0]), r"^task 1, row 1, dimension 'x': received 11.0.*\[0.0, 10.0\]"),
        (([1.0, math.nan], [0.0, 1.0]), "^task 1, row 1, dimension 'x': received nan"),
        ((np.ones((2, 3)), [0.0, 1.0]), r"^task 1: .*shape \(2, 3\).*1 dimension"),
        (([{"x": 1.0}, {"z": 1.0}], [0.0, 1.0]), "^task 1, row 1 lacks 'x' and has .* 'z'"),
        (([1.0, 2.0], [0.0]), "^task 1: received 2 points but 1 values"),
        (([], [0.0]), "^task 1: received 0 points but 1 values"),
        (([], []), "^task 1: .*without points; drop it"),
        (([1.0, 2.0], np.zeros((2, 1))), r"^task 1: .*shape \(2, 1\)"),
        (([1.0], 3.0), "^task 1: received 3.0 as values"),
        (([1.0, 2.0],), "^task 1: .*pair"),
        (np.zeros((2, 2)), "^task 1: received ndarray.*pair"),
        ({"x": [1.0]}, "^task 1: received dict.*pair"),
    ],
)
def test_tasks_bad_runs_name_their_task(bad, message):
    with pytest.raises(ValueError, match=message) as caught:
        Tasks.from_runs([GOOD, bad, GOOD], space=LINE)
    assert str(caught.value).endswith(".")


def test_tasks_unknown_category_names_task_row_and_dimension():
    bad = ([{"lr": 0.1, "depth": 1, "act": "gelu"}], [1.0])
    with pytest.raises(ValueError, match="^task 2, row 0, dimension 'act': received 'gelu'"):
        Tasks.from_runs([FIRST, SECOND, bad], space=SPACE)


def test_tasks_from_runs_refuses_an_empty_list():
    with pytest.raises(ValueError, match="no runs"):
        Tasks.from_runs([], space=LINE)


def test_tasks_from_runs_refuses_an_unknown_direction():
    with pytest.raises(ValueError, match="'min'.*'maximize' or 'minimize'"):
        Tasks.from_runs([GOOD], space=LINE, direction="min")


def test_tasks_from_runs_refuses_what_is_not_a_space():
    with pytest.raises(TypeError, match="Space"):
        Tasks.from_runs([GOOD], space={"x": (0, 1)})  # pyright: ignore[reportArgumentType]


def test_tasks_from_runs_refuses_what_is_not_a_list_of_runs():
    with pytest.raises(TypeError, match="runs"):
        Tasks.from_runs(3, space=LINE)  # pyright: ignore[reportArgumentType]
