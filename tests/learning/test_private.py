"""A private prior: no point of a past run is in its files, and it is asked like any other."""

import jax
import numpy as np
import pytest
from safetensors.numpy import load

import metaprior as mp
from metaprior.belief import runs_held
from metaprior.learning._asked import asked_contents
from tests.saved import arrays_of


def numbers_in(folder):
    """All numbers of a saved prior: those of its arrays, and those in its texts."""
    arrays = load(arrays_of(folder).read_bytes()).values()
    found = [np.ravel(array) for array in arrays if array.dtype.kind == "f"]
    text = (folder / "prior.json").read_text() + (folder / "README.md").read_text()
    return np.concatenate(found), text


def asked(hill_prior, tasks, *, private):
    """The belief that `learn` puts around what was learned from the tasks."""
    members = jax.tree.map(
        lambda leaf: leaf[None] if hasattr(leaf, "shape") else leaf, hill_prior.surrogate
    )
    contents = asked_contents(hill_prior.method, members, 1, tasks, private=private)
    return mp.Prior(tasks.space, tasks.direction, contents, {})


@pytest.fixture(scope="module")
def tasks(hill_space, hill_runs):
    return mp.Tasks.from_runs(hill_runs, space=hill_space)


def points_held(folder, tasks):
    """How many coordinates of past runs are in the files of a prior."""
    numbers, _ = numbers_in(folder)
    return int(np.isin(tasks.x[tasks.mask].ravel(), numbers).sum())


def test_private_prior_holds_no_point_and_loads(hill_prior, tasks, hill_runs, tmp_path):
    private, usual = (asked(hill_prior, tasks, private=each) for each in (True, False))
    assert (runs_held(private.contents.arrays), runs_held(usual.contents.arrays)) == (0, 6)
    for prior, name in ((private, "private"), (usual, "usual")):
        prior.save(tmp_path / name)
    assert points_held(tmp_path / "private", tasks) == 0 < points_held(tmp_path / "usual", tasks)
    assert "No point of a past run." in numbers_in(tmp_path / "private")[1]
    loaded = mp.load(tmp_path / "private")
    x, y = hill_runs[4]
    for run in (([], []), (x, y)):
        ours, theirs = (p.condition(*run).predict(x) for p in (private, loaded))
        np.testing.assert_array_equal(ours, theirs)
    # The rest of the mixture is there: what was learned, and what knows nothing of the past.
    assert 0.0 < (mp.Optimizer(loaded, seed=0).trust or 0.0) < 1.0


@pytest.mark.slow
def test_learn_private_keeps_no_point_anywhere(tasks, tmp_path):
    prior = mp.learn(tasks, budget="fast", seed=0, private=True)
    folder = prior.save(tmp_path / "prior")
    assert points_held(folder, tasks) == 0
    findings = mp.load(folder).findings
    assert findings is not None and findings.held_out is not None and findings.examples == ()
    _, text = numbers_in(folder)
    for index in range(len(tasks)):
        points, values = tasks.run(index)
        assert not any(repr(float(value)) in text for value in values)
        # The lowest and highest coordinates may be bounds of the space, which these are not.
        assert not any(repr(point["x"]) in text for point in points)
    usual = mp.learn(tasks, budget="fast", seed=0)
    assert usual.findings is not None and len(usual.findings.examples) == 2
