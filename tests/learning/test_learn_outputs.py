"""One prior per named value of the same runs."""

import numpy as np
import pytest

import metaprior as mp


@pytest.fixture(scope="module")
def outputs(hill_space, hill_runs):
    """The hill, twice the hill upside down, and a constraint with a value here and there."""
    runs = [
        (x, [{"height": v, "depth": -2.0 * v, "slack": v if i else None} for i, v in enumerate(y)])
        for x, y in hill_runs[1:]
    ]
    roles = {"height": "maximize", "depth": "minimize", "slack": "constraint"}
    return mp.Outputs.from_runs(runs, space=hill_space, outputs=roles)


def test_learn_outputs_learns_each_output_as_learn_does(outputs):
    reports = []
    method = mp.methods.RankWeightedGP()
    priors = mp.learn_outputs(outputs, method=method, seed=1, on_progress=reports.append)
    assert list(priors.objectives) == ["height", "depth"]
    assert list(priors.constraints) == ["slack"]
    points = [[0.0, 5.0], [0.9, 1.0]]
    for name, tasks in outputs.by_name.items():
        alone = mp.learn(tasks, method=method, seed=1).condition([], []).predict(points)
        np.testing.assert_array_equal(priors[name].condition([], []).predict(points), alone)
    assert {r.stage.split(":")[0] for r in reports} == {"height", "depth", "slack"}
    fractions = [r.fraction for r in reports]
    assert fractions == sorted(fractions) and 0.0 <= fractions[0] and fractions[-1] <= 1.0


def test_learn_outputs_rejects_tasks(outputs):
    with pytest.raises(TypeError, match="Outputs"):
        mp.learn_outputs(outputs["height"])
