"""Past runs in tensors: tasks from either coordinates, and what is refused."""

# ruff: noqa: E402 (nothing below can be imported without BoTorch)

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="`make oracle` installs torch")
pytest.importorskip("botorch", reason="`make oracle` installs BoTorch")
pytestmark = pytest.mark.oracle

import metaprior as mp
from metaprior.adapters.botorch import UnitCube, UserUnits, tasks
from tests.adapters.hand_made import MIXED, points


def values_of(n, seed):
    return torch.tensor(np.random.default_rng(seed).normal(size=(n, 1)))


@pytest.mark.parametrize("coordinates", [UserUnits, UnitCube, lambda space: space])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_tasks_are_those_of_the_same_points_by_name(coordinates, direction):
    runs = [(points(n, seed=n), values_of(n, n)) for n in (3, 7)]
    where = UnitCube(MIXED) if coordinates(MIXED) is MIXED else coordinates(MIXED)
    found = tasks(
        [(where.tensor(rows), Y) for rows, Y in runs],
        coordinates(MIXED),
        direction=direction,
        names=["a", "b"],
    )
    expected = mp.Tasks.from_runs(
        [(rows, Y[:, 0].numpy()) for rows, Y in runs], space=MIXED, direction=direction
    )
    np.testing.assert_allclose(found.x, expected.x, atol=1e-12)
    np.testing.assert_array_equal(found.y, expected.y)
    assert found.direction == direction and found.names == ("a", "b")


def test_tasks_take_single_precision_and_rounding_at_the_bounds():
    space = mp.Space(x=mp.Real(0.0, 1.0), n=mp.Integer(1, 9))
    X = torch.tensor([[1.0 + 5e-7, 0.4], [0.5, 0.0]], dtype=torch.float32, requires_grad=True)
    found = tasks([(X, torch.tensor([[1.0], [2.0]]))], space)
    assert found.run(0)[0] == [{"x": 1.0, "n": 4}, {"x": 0.5, "n": 1}]


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (3, "Run 0 is 3; give a pair of tensors"),
        (([[0.5]], [1.0]), "Run 0 is (.*); give a pair of tensors"),
        ((torch.zeros(2, 1), torch.zeros(2)), "run 0: Y has shape .2,.; give .2, 1., one value"),
        ((torch.zeros(2), torch.zeros(2, 1)), "run 0: X has shape .2,.; give the points of one ru"),
        ((torch.zeros(2, 2), torch.zeros(2, 1)), "run 0: X has 2 columns where UnitCube of"),
        ((torch.full((1, 1), 1.5), torch.zeros(1, 1)), "Row 0 of run 0: X has 1.5 in column 0"),
        ((torch.zeros(1, 1), torch.full((1, 1), torch.nan)), "task 0"),
    ],
)
def test_tasks_answer_bad_input_in_one_sentence(run, sentence):
    with pytest.raises(ValueError, match=sentence):
        tasks([run], mp.Space(x=mp.Real(0.0, 1.0)))
