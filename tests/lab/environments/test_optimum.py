"""The optima against the literature, against brute force and against another optimiser."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.optimize

from metaprior.lab.environments import (
    Branin,
    BraninTask,
    Camelback,
    CamelbackTask,
    Hartmann6,
    HartmannTask,
    Mixture1d,
)
from metaprior.lab.environments._optimum import find_optima

FAMILIES = [Mixture1d(), Branin(), Camelback(), Hartmann6()]


@jax.jit
def values(tasks, u):
    return jax.vmap(lambda task: jax.vmap(task)(u))(tasks)


def test_find_optima_finds_published_optima():
    branin = BraninTask(
        a=1.0, b=5.1 / (4 * np.pi**2), c=5 / np.pi, r=6.0, s=10.0, t=1 / (8 * np.pi)
    )
    found = Branin().optimum(Branin().stack([branin]))
    np.testing.assert_allclose(found.value, [-0.39788735772973816], atol=1e-12)
    camelback = CamelbackTask(a=0.0, omega=np.ones(2), rho=np.zeros(2))
    found = Camelback().optimum(Camelback().stack([camelback]))
    np.testing.assert_allclose(found.value, [1.031628453489877], atol=1e-12)
    hartmann = HartmannTask(alpha=np.array([1.0, 1.2, 3.0, 3.2]))
    found = Hartmann6().optimum(Hartmann6().stack([hartmann]))
    np.testing.assert_allclose(found.value, [3.322368011415515 / 3.322368], atol=1e-10)
    np.testing.assert_allclose(
        found.x[0], [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573], atol=1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_find_optima_leaves_no_point_above(family):
    tasks = family.sample_tasks(10, key=jr.key(11))
    found = family.optimum(tasks)
    d = family.space.num_columns
    assert found.value.shape == (10,) and found.x.shape == (10, d)
    assert found.value.dtype == found.x.dtype == np.float64
    assert np.all((found.x >= 0) & (found.x <= 1))
    attained = jax.jit(jax.vmap(lambda task, u: task(u)))(tasks, jnp.asarray(found.x))
    np.testing.assert_allclose(attained, found.value, rtol=1e-12)
    everywhere = np.random.default_rng(0).uniform(size=(20_000, d))
    assert np.all(found.value >= values(tasks, everywhere).max(axis=1))
    steps = np.random.default_rng(1).normal(0, 1e-3, (1, 500, d))
    near = jnp.asarray(np.clip(found.x[:, None, :] + steps, 0, 1))
    around = jax.jit(jax.vmap(lambda task, u: jax.vmap(task)(u)))(tasks, near)
    assert np.all(around.max(axis=1) <= found.value)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_find_optima_is_stationary_or_against_a_wall(family):
    tasks = family.sample_tasks(10, key=jr.key(12))
    found = family.optimum(tasks)
    gradient = np.asarray(
        jax.jit(jax.vmap(lambda task, u: jax.grad(task)(u)))(tasks, jnp.asarray(found.x))
    )
    outward = ((found.x == 0) & (gradient < 0)) | ((found.x == 1) & (gradient > 0))
    # A gradient g over curvature of order 1 to 1000 means an error in value of about g^2.
    assert np.abs(np.where(outward, 0, gradient)).max() < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_find_optima_agrees_with_differential_evolution(family):
    tasks = family.sample_tasks(2, key=jr.key(13))
    found = family.optimum(tasks)
    for task, value in zip(family.unstack(tasks), found.value, strict=True):
        batch = jax.jit(jax.vmap(task))
        other = scipy.optimize.differential_evolution(
            lambda u, batch=batch: -np.asarray(batch(jnp.asarray(u.T))),
            [(0, 1)] * family.space.num_columns,
            vectorized=True,
            updating="deferred",
            polish=False,
            popsize=20,
            maxiter=400,
            tol=1e-10,
            rng=0,
        )
        np.testing.assert_allclose(value, -other.fun, atol=1e-7)
        assert value >= -other.fun - 1e-12


def test_find_optima_finds_a_hidden_narrow_hill():
    # A broad hill of height 0.75 and a higher, narrow one over a thousandth of the cube.
    class TwoHills(eqx.Module):
        narrow: jax.Array

        def __call__(self, u):
            broad = 0.75 * jnp.exp(-jnp.sum((u - 0.5) ** 2))
            return broad + self.narrow * jnp.exp(-200 * jnp.sum((u - 0.1) ** 2))

    found = find_optima(TwoHills(jnp.array([0.0, 0.6])), 3)
    np.testing.assert_allclose(found.x[0], 0.5, atol=1e-7)
    np.testing.assert_allclose(found.x[1], 0.1, atol=0.01)
    np.testing.assert_allclose(found.value[0], 0.75, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_find_optima_on_walls_and_in_corners(d):
    class Bowl(eqx.Module):
        centre: jax.Array

        def __call__(self, u):
            # Correlated curvature, so that clipping the unconstrained optimum is not the answer.
            shift = u - self.centre
            return -jnp.sum(shift**2) - 0.9 * jnp.sum(shift) ** 2

    centres = np.random.default_rng(d).uniform(-0.5, 1.5, (6, d))
    found = find_optima(Bowl(jnp.asarray(centres)), d)
    # The same problem as non-negative least squares with bounds, solved by scipy.
    root = np.linalg.cholesky(np.eye(d) + 0.9 * np.ones((d, d))).T
    for centre, x, value in zip(centres, found.x, found.value, strict=True):
        solved = scipy.optimize.lsq_linear(root, root @ centre, (0, 1), method="bvls", tol=1e-14)
        np.testing.assert_allclose(x, solved.x, atol=1e-6)
        np.testing.assert_allclose(value, -2 * solved.cost, atol=1e-9)
    assert np.any((found.x == 0) | (found.x == 1))


@pytest.mark.slow
def test_find_optima_is_deterministic():
    family = Camelback()
    tasks = family.sample_tasks(5, key=jr.key(4))
    first, again = family.optimum(tasks), family.optimum(tasks)
    np.testing.assert_array_equal(first.x, again.x)
    np.testing.assert_array_equal(first.value, again.value)
    # A stack of other length holds the same first tasks: their optima do not depend on company.
    fewer = family.optimum(family.stack(family.unstack(tasks)[:2]))
    np.testing.assert_allclose(fewer.value, first.value[:2], rtol=1e-12)
