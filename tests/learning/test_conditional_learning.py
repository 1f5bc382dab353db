"""From past runs over a space with conditions to valid points of the best branch."""

import numpy as np
import pytest

import metaprior as mp

SPACE = mp.Space(
    kind=mp.Categorical(["tree", "linear"]),
    depth=mp.Integer(1, 7, step=2, when={"kind": ["tree"]}),
    alpha=mp.Real(1e-3, 1.0, log=True, when={"kind": ["linear"]}),
    share=mp.Real(0.0, 1.0),
)


def value_of(point, shift):
    """Linear models are better, best near alpha = 0.1; trees like depth."""
    base = -((point["share"] - 0.3 - shift) ** 2)
    if point["kind"] == "tree":
        return base + 0.1 * point["depth"] / 7
    return base + 1.0 - (np.log10(point["alpha"]) + 1.0) ** 2


@pytest.mark.slow
def test_learn_on_a_conditional_space_saves_and_asks(tmp_path):
    rng = np.random.default_rng(0)
    runs = []
    for shift in rng.normal(0, 0.05, 6):
        points = SPACE.decode(rng.uniform(size=(12, SPACE.num_columns)))
        runs.append((points, [value_of(point, shift) for point in points]))
    tasks = mp.Tasks.from_runs(runs, space=SPACE)
    method = mp.methods.Guarded(mp.methods.FPacohMap(num_steps=150, learning_rate=1e-2))
    prior = mp.learn(tasks, method=method, seed=0)
    loaded = mp.load(prior.save(tmp_path / "prior"))
    assert loaded.space == SPACE
    queries = SPACE.decode(rng.uniform(size=(5, SPACE.num_columns)))
    for ours, theirs in zip(
        prior.condition(*runs[0]).predict(queries),
        loaded.condition(*runs[0]).predict(queries),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
    optimizer = mp.Optimizer(loaded, seed=0)
    first = optimizer.ask()
    assert first["kind"] == "linear"
    assert 0.03 < first["alpha"] < 0.3
    for _ in range(4):
        point = optimizer.ask()
        assert set(point) == set(SPACE.existing(point))
        optimizer.tell(point, value_of(point, 0.02))
    assert optimizer.best is not None and optimizer.best.value > 0.9
