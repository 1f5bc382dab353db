"""Replayed runs: the order of queries, by surrogates whose predictions are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.belief import AveragedBelief
from metaprior.data import Run
from metaprior.learning._exam import exam_of, folds_of
from metaprior.learning._predict import CompiledPredictors, ConditionedPredictors
from metaprior.learning._replay import (
    BETA,
    FEWEST_POINTS,
    SOLVED,
    Regrets,
    _regret,
    can_be_replayed,
    evaluations_until_solved,
    query_order,
    replay,
    summary,
)
from metaprior.methods import AbstractSurrogate, Moments
from tests.learning.answers import Level, Slope, tasks_of
from tests.moments_only import MomentsOnly

CAPACITY = 6


def order(surrogate: AbstractSurrogate, x: list[float], y: list[float]) -> list[int]:
    length, spare = len(x), CAPACITY - len(x)
    alone = jax.tree.map(lambda leaf: leaf[None], surrogate)
    found = query_order(
        CompiledPredictors(alone),
        np.zeros(1, int),
        np.array([[*x, *[9.0] * spare]])[..., None],
        np.array([[*y, *[9.0] * spare]]),
        np.array([length]),
        enough=np.array([np.inf]),
    )[0]
    assert found[length:].tolist() == list(range(length, CAPACITY))
    return found[:length].tolist()


def test_replay_order_is_from_the_highest_bound_down():
    """A point behind the end of the run would be the best of all, and is never asked."""
    x, y = [0.3, 0.9, 0.1, 0.6], [0.0, 0.0, 0.0, 0.0]
    assert order(Slope(jnp.asarray(1.0)), x, y) == [1, 3, 0, 2]
    assert order(Slope(jnp.asarray(-1.0)), x, y) == [2, 0, 3, 1]


class Contrary(AbstractSurrogate):
    """Wants small points after a value above zero and large ones otherwise: it must see the values
    of what it asked for, in that order, and of nothing else."""

    def condition(self, run: Run) -> Level:
        last = jnp.where(run.length > 0, run.y[jnp.maximum(run.length - 1, 0)], 0.0)
        return Level(jnp.asarray(0.0), jnp.where(last > 0, -1.0, 1.0), jnp.asarray(1.0))


def test_replay_order_depends_on_the_values_seen():
    x = [0.1, 0.2, 0.3, 0.4, 0.5]
    # 4 (no answer yet), +1: 0, then -1: 3, then -1: 2, then +1: 1.
    assert order(Contrary(), x, [-1.0, 0.0, 1.0, -1.0, 1.0]) == [4, 0, 3, 2, 1]


class Doubtful(AbstractSurrogate):
    """Expects 1 of large points, for certain, and 0 of small ones, give or take `std`."""

    std: jnp.ndarray

    def condition(self, run: Run) -> "Side":
        return Side(self.std)


class Side(MomentsOnly):
    std: jnp.ndarray

    def moments(self, x):
        is_large = jnp.where(x[0] > 0.5, 1.0, 0.0)
        return Moments(is_large, (1.0 - is_large) * self.std**2, jnp.asarray(0.0))


def test_replay_order_prefers_a_large_enough_uncertainty():
    surely = 1.01 / BETA
    assert order(Doubtful(jnp.asarray(surely)), [0.9, 0.1], [0.0, 0.0]) == [1, 0]
    assert order(Doubtful(jnp.asarray(0.98 * surely)), [0.9, 0.1], [0.0, 0.0]) == [0, 1]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=CAPACITY), st.integers(0, 2**31 - 1))
def test_replay_order_has_every_point_once(values, seed):
    x = np.random.default_rng(seed).uniform(size=len(values)).tolist()
    assert sorted(order(Contrary(), x, values)) == list(range(len(values)))


def test_query_order_asks_the_prior_of_each_run():
    x, y = np.tile(np.array([0.0, 0.5, 1.0])[:, None], (2, 1, 1)), np.zeros((2, 3))
    slopes = CompiledPredictors(Slope(jnp.array([-9.0, 8.0, 100.0])))
    enough = np.full(2, np.inf)
    found = query_order(slopes, np.array([1, 0]), x, y, np.array([3, 3]), enough=enough)
    assert found.tolist() == [[2, 1, 0], [0, 1, 2]]


def test_query_order_is_no_matter_after_a_value_that_is_enough():
    """What is left of the run then stays as it was, but for the exchange of the last query."""
    x, y = np.array([[0.1, 0.3, 0.5, 0.9]])[..., None], np.array([[0.0, 1.0, 2.0, 5.0]])
    for enough, order in ((5.0, [3, 1, 2, 0]), (np.inf, [3, 2, 1, 0])):
        found = query_order(
            CompiledPredictors(Slope(jnp.array([1.0]))),
            np.zeros(1, int),
            x,
            y,
            np.array([4]),
            enough=np.array([enough]),
        )
        assert found[0].tolist() == order


def test_regret_by_hand():
    values = np.array([[0.0, 4.0, 2.0, 1.0, 3.0], [7.0, 7.0, 7.0, 7.0, 1e9]])
    found = _regret(values, np.array([5, 4]), np.array([[3, 0, 2, 4, 1], [3, 2, 1, 0, 4]]))
    # Best 4 and median 2 of the first; the second is constant, and one shorter.
    np.testing.assert_allclose(found[0], [1.5, 1.5, 1.0, 0.5, 0.0])
    np.testing.assert_allclose(found[1], [0.0, 0.0, 0.0, 0.0, np.nan])


@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_regret_has_no_unit_even_where_most_values_are_the_best(unit):
    values = unit * np.array([[5.0, 5.0, 5.0, 1.0]])
    found = _regret(values, np.array([4]), np.array([[3, 0, 1, 2]]))
    np.testing.assert_allclose(found, [[1.0, 0.0, 0.0, 0.0]])


def test_evaluations_until_solved_allow_a_small_regret():
    little, much = 0.9 * SOLVED, 1.1 * SOLVED
    regret = np.array([[0.0, 0.0, 0.0], [1.0, much, little], [2.0, 0.0, np.nan]])
    assert evaluations_until_solved(regret).tolist() == [1, 3, 2]


def test_summary_of_saved_evaluations_by_hand():
    """Solved after 1, 2 and 1 evaluations instead of after 3, 3 and 1."""
    ours = np.array([[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, np.nan], [0.0, 0.0, 0.0, 0.0]])
    theirs = np.array([[1.0, 1.0, 0.0, 0.0], [2.0, 1.0, 0.0, np.nan], [0.0, 0.0, 0.0, 0.0]])
    found = summary(Regrets(ours, theirs, theirs))
    assert found.steps == (1, 2, 3, 4) and found.runs == 3
    assert found.saved_evaluations == 1.0
    expected = scipy.stats.t.interval(0.95, 2, 1.0, scipy.stats.sem([2.0, 1.0, 0.0]))
    assert found.saved_interval == pytest.approx(expected, rel=1e-7, abs=0.0)
    assert found.learned == pytest.approx((1 / 3, 0.0, 0.0, 0.0), rel=1e-7, abs=0.0)
    assert found.baseline == pytest.approx((1.0, 2 / 3, 0.0, 0.0), rel=1e-7, abs=0.0)


def test_summary_keeps_a_finished_run_at_its_end():
    """Its regret is then 0: all of its points have been queried."""
    regret = np.array([[2.0, 0.0, np.nan, np.nan], [3.0, 2.0, 2.0, 0.0]])
    found = summary(Regrets(regret, regret, regret))
    assert found.recorded == pytest.approx((2.5, 1.0, 1.0, 0.0), rel=1e-7, abs=0.0)


def test_summary_of_one_run_has_no_interval():
    found = summary(Regrets(np.array([[0.0, 0.0]]), np.array([[1.0, 0.0]]), np.zeros((1, 2))))
    assert found.saved_evaluations == 1.0 and found.saved_interval is None


def test_replay_uses_the_prior_that_did_not_see_the_run():
    """In the first fold large points are expected to be good, and are; in the second small ones are
    expected to be good, and are not."""
    rising = [float(i) for i in range(6)]
    tasks = tasks_of(rising, [1.0, 2.0], rising, rising[:5], rising)
    exam = exam_of(tasks, folds_of(5, 2))
    priors = CompiledPredictors(Slope(jnp.array([1.0, -1.0])))
    found = replay(
        priors,
        ConditionedPredictors([AveragedBelief(0.0, 1.0)] * 2),
        exam,
        np.arange(1),
    )
    assert found is not None
    # Without the run of two points, which is too short to choose from.
    assert FEWEST_POINTS > 2 and len(found.learned) == 4
    assert evaluations_until_solved(found.learned).tolist() == [1, 1, 5, 6]
    assert evaluations_until_solved(found.recorded).tolist() == [6, 6, 5, 6]
    assert np.isnan(found.learned[2, 5:]).all() and not np.isnan(found.learned[2, :5]).any()
    # The baseline is the same in both folds, and so are its runs.
    np.testing.assert_array_equal(found.baseline[0], found.baseline[3])


def test_can_be_replayed_takes_one_long_run():
    short = tasks_of([1.0], [1.0, 2.0])
    assert not can_be_replayed(exam_of(short, folds_of(2, 2)))
    long = tasks_of([1.0], [float(i) for i in range(FEWEST_POINTS)])
    assert can_be_replayed(exam_of(long, folds_of(2, 2)))


@pytest.mark.parametrize("queries", [0, 1, 5, 7])
def test_replay_is_none_if_time_is_up_before_the_end(queries):
    """Six queries by the prior come first, and then those by the baseline."""
    rising = [float(i) for i in range(6)]
    exam = exam_of(tasks_of(rising, rising), folds_of(2, 2))
    asked = []

    def is_over() -> bool:
        asked.append(len(asked))
        return len(asked) > queries

    priors = CompiledPredictors(Slope(jnp.array([-1.0, -1.0])))
    baselines = ConditionedPredictors([AveragedBelief(0.0, 1.0)] * 2)
    assert replay(priors, baselines, exam, np.arange(1), is_over) is None
    assert len(asked) == queries + 1
