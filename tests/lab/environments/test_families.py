"""The distributions of the tasks, and the bookkeeping around them."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from metaprior.lab.environments import Branin, Camelback, Hartmann6, Mixture1d

FAMILIES = [Mixture1d(), Branin(), Camelback(), Hartmann6()]
NUM = 4000
# 22 comparisons in this file, each at this level: one seed in 45,000 would fail by chance.
LEVEL = 1e-6


def uniform(low, high):
    return scipy.stats.uniform(low, high - low)


MARGINALS = {
    "mixture1d": {
        "weight": [uniform(0.6, 1.4)] * 3,
        "location": [scipy.stats.norm(centre, 0.3) for centre in (-2, 3, -8)],
    },
    "branin": {
        "a": [uniform(0.5, 1.5)],
        "b": [uniform(0.1, 0.15)],
        "c": [uniform(1, 2)],
        "r": [uniform(5, 7)],
        "s": [uniform(8, 12)],
        "t": [uniform(0.03, 0.05)],
    },
    "camelback": {
        "a": [uniform(0.3, 0.5)],
        "omega": [uniform(0.5, 1.0)] * 2,
        "rho": [scipy.stats.norm(0, 0.3)] * 2,
    },
    "hartmann6": {
        "alpha": [uniform(0.5, 1.5), uniform(0.6, 1.4), uniform(2, 3), uniform(2.8, 3.6)]
    },
}


def parameter_columns(family, num, seed):
    """Every scalar parameter of `num` tasks as a column, with the distribution it should have."""
    tasks = family.sample_tasks(num, key=jr.key(seed))
    for name, distributions in MARGINALS[family.name].items():
        samples = np.asarray(getattr(tasks, name)).reshape(num, -1)
        assert samples.shape[1] == len(distributions)
        yield from zip(samples.T, distributions, strict=True)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_family_parameters_follow_the_paper(family):
    for column, distribution in parameter_columns(family, NUM, seed=0):
        assert scipy.stats.kstest(column, distribution.cdf).pvalue > LEVEL
        low, high = distribution.support()
        assert low <= column.min() and column.max() <= high


def test_family_parameter_test_can_fail():
    column, _ = next(parameter_columns(Branin(), NUM, seed=0))
    # Bounds off by a tenth of their width.
    assert scipy.stats.kstest(column, uniform(0.5, 1.6).cdf).pvalue < LEVEL


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_family_parameters_are_independent(family):
    columns = np.stack([column for column, _ in parameter_columns(family, NUM, seed=3)])
    correlation = np.corrcoef(columns) - np.eye(len(columns))
    # Five standard errors of a correlation under independence.
    assert np.abs(correlation).max() < 5 / np.sqrt(NUM)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_family_same_key_same_tasks(family):
    first, again, other = (family.sample_tasks(3, key=jr.key(seed)) for seed in (7, 7, 8))
    for a, b, c in zip(*map(jax.tree.leaves, (first, again, other)), strict=True):
        assert a.dtype == np.float64
        np.testing.assert_array_equal(a, b)
        assert np.all(a != c)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_family_stack_undoes_unstack(family):
    tasks = family.sample_tasks(4, key=jr.key(0))
    listed = family.unstack(tasks)
    assert len(listed) == 4
    for a, b in zip(jax.tree.leaves(tasks), jax.tree.leaves(family.stack(listed)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_family_is_double_precision_without_the_global_switch(family):
    with jax.enable_x64(False):
        tasks = family.sample_tasks(2, key=jr.key(1))
        first = family.unstack(tasks)[0]
        corner = [[d.low for d in family.space.dimensions]]
        got = first.evaluate(np.array(corner))
    assert jax.tree.leaves(tasks)[0].dtype == np.float64
    assert got.dtype == np.float64
    expected = first(jnp.zeros(family.space.num_columns))
    np.testing.assert_allclose(got[0], expected, rtol=1e-12)


def test_family_sizes_are_those_of_the_papers_table():
    sizes = {f.name: (f.space.num_columns, f.num_tasks, f.run_length) for f in FAMILIES}
    assert sizes == {
        "mixture1d": (1, 10, 10),
        "branin": (2, 20, 20),
        "camelback": (2, 20, 20),
        "hartmann6": (6, 30, 100),
    }


def test_family_observation_noise_has_the_stated_std():
    family = Branin(noise_std=0.5)
    task = family.unstack(family.sample_tasks(1, key=jr.key(2)))[0]
    u = jnp.array([0.3, 0.6])
    keys = jr.split(jr.key(3), NUM)
    noise = jax.vmap(lambda key: family.observe(task, u, key=key))(keys) - task(u)
    assert scipy.stats.kstest(np.asarray(noise), scipy.stats.norm(0, 0.5).cdf).pvalue > LEVEL
    assert scipy.stats.kstest(np.asarray(noise), scipy.stats.norm(0, 0.6).cdf).pvalue < LEVEL
    assert Branin().observe(task, u, key=keys[0]) == task(u)


def test_family_is_a_value():
    assert Branin() == Branin() and hash(Branin()) == hash(Branin())
    assert Branin(noise_std=0.1) != Branin()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_tasks": 0}, "`num_tasks` of Branin is 0"),
        ({"run_length": -3}, "`run_length` of Branin is -3"),
        ({"noise_std": -0.1}, "`noise_std` of Branin is -0.1"),
        ({"noise_std": np.nan}, "`noise_std` of Branin is nan"),
    ],
)
def test_family_refuses_bad_configurations(arguments, message):
    with pytest.raises(ValueError, match=message):
        Branin(**arguments)


def test_family_explains_misuse_of_stacks():
    family = Hartmann6()
    tasks = family.sample_tasks(4, key=jr.key(0))
    with pytest.raises(ValueError, match="got a single HartmannTask"):
        family.optimum(family.unstack(tasks)[0])
    with pytest.raises(TypeError, match="Expected tasks of Branin, got HartmannTask"):
        Branin().unstack(tasks)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="Cannot sample 0 tasks"):
        family.sample_tasks(0, key=jr.key(0))
    with pytest.raises(ValueError, match="empty list"):
        family.stack([])
