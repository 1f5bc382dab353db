"""Values of the four functions against NumPy, hand arithmetic and the literature."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from metaprior.lab.environments import (
    Branin,
    BraninTask,
    Camelback,
    CamelbackTask,
    Hartmann6,
    HartmannTask,
    Mixture1d,
    MixtureTask,
)

FAMILIES = [Mixture1d(), Branin(), Camelback(), Hartmann6()]
STANDARD_BRANIN = BraninTask(
    a=1.0, b=5.1 / (4 * np.pi**2), c=5 / np.pi, r=6.0, s=10.0, t=1 / (8 * np.pi)
)
NATIVE_BOUNDS = {
    "mixture1d": ([-10], [10]),
    "branin": ([-5, 0], [10, 15]),
    "camelback": ([-2, -1], [2, 2]),
    "hartmann6": ([0] * 6, [1] * 6),
}


def to_native(name, u):
    low, high = (np.array(bound, float) for bound in NATIVE_BOUNDS[name])
    return low + (high - low) * u


def test_mixture_by_hand_at_its_centres():
    task = MixtureTask(weight=np.array([1.0, 0.7, 1.3]), location=np.array([-2.0, 3.0, -8.0]))
    # At x = -2 the squared distances are 0, 25 and 36.
    at_first = 2 / np.pi + 0.7 * 1.5 * np.exp(-25 / 8) / np.sqrt(2 * np.pi) + 1
    at_first += 1.3 * 1.8 / (np.pi * (1 + 36 / 4))
    # At x = 3 they are 25, 0 and 121.
    at_second = 2 / (np.pi * 26) + 0.7 * 1.5 / np.sqrt(2 * np.pi) + 1
    at_second += 1.3 * 1.8 / (np.pi * (1 + 121 / 4))
    got = task.evaluate([{"x": -2.0}, {"x": 3.0}])
    np.testing.assert_allclose(got, [at_first, at_second], rtol=1e-13)


def test_mixture_is_built_from_scipy_densities():
    weight, location = np.array([0.8, 1.1, 1.4]), np.array([-2.3, 3.1, -7.6])
    x = np.linspace(-10, 10, 41)
    # The scale-2 densities of scipy are normalised by the scale; the paper's bumps are not.
    expected = (
        2 * weight[0] * scipy.stats.cauchy.pdf(x, location[0])
        + 1.5 * weight[1] * 2 * scipy.stats.norm.pdf(x, location[1], 2)
        + 1.8 * weight[2] * 2 * scipy.stats.cauchy.pdf(x, location[2], 2)
        + 1
    )
    got = MixtureTask(weight, location).evaluate(x[:, None])
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("x", [(-np.pi, 12.275), (np.pi, 2.275), (9.42478, 2.475)])
def test_branin_has_its_three_published_optima(x):
    got = STANDARD_BRANIN.evaluate([{"x1": x[0], "x2": x[1]}])
    np.testing.assert_allclose(got, -0.397887, atol=1e-6)


def test_branin_by_hand_away_from_the_standard_parameters():
    task = BraninTask(a=0.5, b=0.125, c=1.5, r=7.0, s=8.0, t=0.05)
    # x = (0, 5): (5 - 7)^2 / 2 + 8 * 0.95 + 8 = 17.6.
    # x = (4, 10): 10 - 2 + 6 - 7 = 7, 49 / 2 = 24.5.
    expected = [-17.6, -(24.5 + 7.6 * np.cos(4.0) + 8)]
    np.testing.assert_allclose(task.evaluate(np.array([[0.0, 5.0], [4.0, 10.0]])), expected)


@pytest.mark.parametrize("sign", [-1, 1])
def test_camelback_without_noise_has_its_published_optima(sign):
    task = CamelbackTask(a=0.0, omega=np.array([0.7, 0.9]), rho=np.zeros(2))
    got = task.evaluate(np.array([[0.089842 * sign, -0.712656 * sign]]))
    np.testing.assert_allclose(got, 1.031628, atol=1e-6)


def test_camelback_by_hand_on_and_below_the_cut():
    task = CamelbackTask(a=0.4, omega=np.array([0.5, 1.0]), rho=np.array([0.2, -0.1]))
    # x = (1, 0.5): -(4 - 2.1 + 1/3) - 0.5 - (1 - 4) / 4 = -2.2333... + 0.25.
    # x = (2, 2): the humps are at about -55.7, far below the cut.
    humps = np.array([-(1.9 + 1 / 3) + 0.25, -2.5])
    waves = 0.4 * np.sin([0.5 * 0.8, 0.5 * 1.8]) * np.sin([0.6, 2.1])
    got = task.evaluate(np.array([[1.0, 0.5], [2.0, 2.0]]))
    np.testing.assert_allclose(got, humps + waves, rtol=1e-13)


def test_hartmann_has_its_published_optimum():
    task = HartmannTask(alpha=np.array([1.0, 1.2, 3.0, 3.2]))
    x = np.array([[0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]])
    np.testing.assert_allclose(task.evaluate(x), 3.32237 / 3.322368, atol=1e-5)


@pytest.mark.parametrize("bump", range(4))
def test_hartmann_bump_by_bump(bump):
    steepness = [
        (10, 3, 17, 3.5, 1.7, 8),
        (0.05, 10, 17, 0.1, 8, 14),
        (3, 3.5, 1.7, 10, 17, 8),
        (17, 8, 0.05, 10, 0.1, 14),
    ][bump]
    centre = [
        (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
        (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
        (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
        (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
    ][bump]
    x = np.random.default_rng(bump).uniform(size=(20, 6))
    # A Gaussian bump is a normal density without its normalisation.
    std = 1 / np.sqrt(2 * np.array(steepness))
    ratio = scipy.stats.norm.pdf(x, centre, std) / scipy.stats.norm.pdf(centre, centre, std)
    expected = 2.5 * ratio.prod(axis=1) / 3.322368
    got = HartmannTask(alpha=2.5 * np.eye(4)[bump]).evaluate(x)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_formula_in_unit_cube_and_native_units_agrees(family):
    tasks = family.sample_tasks(3, key=jr.key(1))
    u = np.random.default_rng(2).uniform(size=(7, family.space.num_columns))
    stacked = jax.jit(jax.vmap(lambda task: jax.vmap(task)(jnp.asarray(u))))(tasks)
    assert stacked.shape == (3, 7)
    for row, task in zip(stacked, family.unstack(tasks), strict=True):
        np.testing.assert_allclose(row, task.evaluate(to_native(family.name, u)), rtol=1e-9)
        np.testing.assert_allclose(task(jnp.asarray(u[4])), row[4], rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_evaluate_takes_dicts_and_arrays_alike(family):
    (task,) = family.unstack(family.sample_tasks(1, key=jr.key(5)))
    u = np.random.default_rng(3).uniform(size=(4, family.space.num_columns))
    rows = to_native(family.name, u)
    dicts = [dict(zip(family.space.names, map(float, row), strict=True)) for row in rows]
    np.testing.assert_array_equal(task.evaluate(dicts), task.evaluate(rows))
