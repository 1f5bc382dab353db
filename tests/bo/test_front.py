"""Fronts, volumes and boxes: against hand arithmetic, counting at random points, and BoTorch."""

import numpy as np
import pytest

from metaprior.bo import hypervolume, on_front, undominated
from metaprior.bo._front import thinned

FRONT = np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]])


def test_hypervolume_of_three_steps_by_hand():
    assert hypervolume(FRONT, np.zeros(2)) == 6.0
    assert hypervolume(np.vstack([FRONT, [[0.5, 2.5], [2.0, 2.0]]]), np.zeros(2)) == 6.0


def test_hypervolume_ignores_points_that_are_not_better_than_the_reference():
    assert hypervolume(FRONT, np.array([2.0, 0.0])) == 1.0
    assert hypervolume(FRONT, np.array([3.0, 3.0])) == 0.0
    assert hypervolume(np.zeros((0, 2)), np.zeros(2)) == 0.0


def test_on_front_keeps_one_of_equal_points_and_drops_what_is_beaten():
    values = np.array([[1.0, 1.0], [0.0, 2.0], [1.0, 1.0], [1.0, 0.5], [0.0, 0.0]])
    np.testing.assert_array_equal(on_front(values), [True, True, False, False, False])


@pytest.mark.parametrize("m", [1, 2, 3])
def test_on_front_compares_every_pair(m):
    """Few different numbers, so that there are many ties."""
    values = np.random.default_rng(m).integers(0, 4, size=(60, m)).astype(float)
    for i, found in enumerate(on_front(values)):
        beaten = np.any(np.all(values >= values[i], axis=1) & np.any(values > values[i], axis=1))
        repeated = np.any(np.all(values[:i] == values[i], axis=1))
        assert found == (not beaten and not repeated)
    np.testing.assert_array_equal(on_front(values[:0]), np.zeros(0, bool))


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_boxes_cover_exactly_what_is_not_dominated(m):
    rng = np.random.default_rng(m)
    values = rng.uniform(size=(9, m))
    reference = np.full(m, 0.2)
    boxes = undominated(values[on_front(values)], reference)
    points = rng.uniform(0.2, 1.1, size=(20_000, m))
    dominated = np.any(np.all(points[:, None] <= values, axis=2), axis=1)
    above, below = points[:, None] > boxes.lower, points[:, None] <= boxes.upper
    inside = np.sum(np.all(above & below, axis=2), axis=1)
    np.testing.assert_array_equal(inside, 1 - dominated)
    assert 0 < dominated.sum() < len(points)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_hypervolume_matches_counting(m):
    rng = np.random.default_rng(m)
    values = rng.uniform(size=(8, m))
    points = rng.uniform(size=(100_000, m))
    share = np.any(np.all(points[:, None] <= values, axis=2), axis=1)
    expected, error = share.mean(), share.std() / np.sqrt(len(share))
    assert abs(hypervolume(values, np.zeros(m)) - expected) < 4 * error


def test_thinned_front_keeps_the_best_of_each_objective():
    along = np.linspace(0.0, 1.0, 50)
    front = np.column_stack([along, 1.0 - along])
    few = thinned(front, 5)
    assert len(few) == 5
    assert few[:, 0].max() == 1.0 and few[:, 1].max() == 1.0
    assert np.diff(np.sort(few[:, 0])).max() < 0.4
    assert thinned(front, 50) is front


@pytest.mark.oracle
@pytest.mark.parametrize("m", [2, 3, 4])
def test_hypervolume_matches_botorch(m):
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("botorch.utils.multi_objective.hypervolume")

    values = np.random.default_rng(m).normal(size=(12, m))
    front = values[on_front(values)]
    expected = theirs.Hypervolume(torch.full((m,), -1.5).double()).compute(torch.from_numpy(front))
    assert hypervolume(values, np.full(m, -1.5)) == pytest.approx(expected, rel=1e-12)
