"""Offline studies: shapes, repeatability, and numbers that can only be what they are."""

import jax
import jax.random as jr
import numpy as np
import pytest
from scipy.stats import norm

from metaprior.lab.environments import Mixture1d, Table
from metaprior.lab.policies import CompiledRestlessBound, RandomSearch, SurrogatePolicy
from metaprior.lab.studies import (
    collect_histories,
    predict_uniform,
    race,
    values_at_predicted_best,
)
from metaprior.methods import FixedGP
from metaprior.metrics import simple_regret

FAMILY = Mixture1d(noise_std=0.1)
TASKS = FAMILY.sample_tasks(3, key=jr.key(1))


@pytest.fixture(scope="module")
def raced():
    policy = RandomSearch(space=FAMILY.space)
    return race(policy, TASKS, 12, key=jr.key(2), noise_std=0.1)


def test_race_runs_every_task_by_itself(raced):
    assert raced.values.shape == raced.y.shape == (3, 12) and raced.x.shape == (3, 12, 1)
    for i, task in enumerate(FAMILY.unstack(TASKS)):
        np.testing.assert_allclose(raced.values[i], jax.vmap(task)(raced.x[i]), rtol=1e-12)
    assert len(np.unique(raced.x)) == 36  # no two runs share their random numbers
    noise = (raced.y - raced.values).ravel()
    assert 0.05 < noise.std() < 0.2
    assert np.isnan(raced.values_at_predicted_best).all()


def test_race_regret_never_grows_and_never_passes_the_optimum(raced):
    regret = simple_regret(FAMILY.optimum(TASKS).value, raced.values)
    assert (np.diff(regret, axis=1) <= 0).all() and (regret >= -1e-9).all()
    assert (regret[:, -1] < regret[:, 0]).any()


@pytest.mark.slow
def test_collect_histories_depends_on_the_key_alone():
    tasks = collect_histories(FAMILY, 3, 4, key=jr.key(0))
    assert tasks.num_tasks == 3 and tasks.lengths.tolist() == [4, 4, 4]
    assert tasks.space == FAMILY.space and tasks.direction == "maximize"
    again = collect_histories(FAMILY, 3, 4, key=jr.key(0))
    np.testing.assert_array_equal(tasks.x, again.x)
    np.testing.assert_array_equal(tasks.y, again.y)
    other = collect_histories(FAMILY, 3, 4, key=jr.key(1))
    assert not np.array_equal(tasks.y, other.y)
    # GP-UCB does not stay where it is: the queries of a run are different points.
    assert all(len(np.unique(x.round(6))) == 4 for x in tasks.x[:, :4, 0])


@pytest.mark.slow
def test_predict_uniform_given_more_points_is_better():
    surrogate = FixedGP(lengthscale=0.5).from_scratch(1)
    found = predict_uniform(surrogate, TASKS, (0, 2, 16), 20, key=jr.key(0))
    assert found.cdf.shape == found.log_density.shape == (3, 3, 20)
    assert (found.cdf >= 0).all() and (found.cdf <= 1).all()
    assert np.isfinite(found.log_density).all()
    # More context, better predictions, of most points at least.
    assert np.median(found.log_density[:, 2]) > np.median(found.log_density[:, 0]) + 0.5
    again = predict_uniform(surrogate, TASKS, (0, 2, 16), 20, key=jr.key(0))
    np.testing.assert_array_equal(again.cdf, found.cdf)


def test_predict_uniform_cdf_and_density_are_of_the_true_values():
    """Without context, the surrogate's prior is a standard normal with noise: both known."""
    surrogate = FixedGP(lengthscale=0.5, noise_variance=0.25).from_scratch(1)
    found = predict_uniform(surrogate, TASKS, (0, 2, 16), 20, key=jr.key(0))
    cdf, log_density = found.cdf[:, 0], found.log_density[:, 0]
    values = norm.ppf(cdf) * np.sqrt(1.25)
    np.testing.assert_allclose(norm.logpdf(values, 0, np.sqrt(1.25)), log_density, rtol=1e-6)
    # Mixtures are 1 plus three positive bumps of at most 2.
    assert (values > 1.0).all() and (values < 3.0).all()


TABLE = Table("rpart")
LOOKED_UP = TABLE.test_tasks(3, key=jr.key(0))


def rows_of(task, x):
    """The number of the row of the table that each query is, bit for bit."""
    valid = task.points[task.valid]
    same = (np.asarray(x)[:, None, :] == valid[None, :, :]).all(axis=2)
    assert (same.sum(axis=1) == 1).all()
    return np.argmax(same, axis=1)


def test_race_on_a_table_repeats_no_row_and_never_leaves_it():
    policy = SurrogatePolicy(
        surrogate=FixedGP(lengthscale=0.5).from_scratch(4),
        acquisition=CompiledRestlessBound(),
        space=TABLE.space,
    )
    found = race(policy, LOOKED_UP, 12, key=jr.key(0), infer=True)
    answers = values_at_predicted_best(policy, LOOKED_UP, found, 12, key=jr.key(1))
    optimum = TABLE.optimum(LOOKED_UP).value
    for i, task in enumerate(TABLE.unstack(LOOKED_UP)):
        rows = rows_of(task, found.x[i])
        assert len(set(rows.tolist())) == 12
        np.testing.assert_array_equal(found.values[i], task.values[task.valid][rows])
        assert np.isin(found.values_at_predicted_best[i], task.values[task.valid]).all()
        assert answers[i] in task.values[task.valid]
    regret = simple_regret(optimum, found.values)
    assert (regret >= 0).all() and regret[:, -1].mean() < 0.5 * regret[:, 0].mean()


def test_collect_histories_of_a_table_are_rows_of_its_training_datasets():
    history = collect_histories(TABLE, 99, 4, key=jr.key(0))
    assert history.num_tasks == 15 and history.lengths.tolist() == [4] * 15
    tasks = TABLE.training_tasks(99, key=jax.random.split(jr.key(0))[0])
    for i, task in enumerate(TABLE.unstack(tasks)):
        # Through the units of the space and back, which costs the last bits.
        distance = np.abs(history.x[i, :4, None] - task.points[None]).max(axis=2)
        nearest = np.argmin(distance, axis=1)
        assert distance.min(axis=1).max() < 1e-12 and len(set(nearest.tolist())) == 4
        np.testing.assert_array_equal(history.y[i, :4], task.values[nearest])


@pytest.mark.slow
def test_predict_uniform_on_a_table_is_of_values_in_it():
    surrogate = FixedGP(noise_variance=0.25).blank_surrogate(4)
    found = predict_uniform(surrogate, LOOKED_UP, (0, 4), 50, key=jr.key(0))
    values = norm.ppf(found.cdf[:, 0]) * np.sqrt(1.25)
    for i, task in enumerate(TABLE.unstack(LOOKED_UP)):
        distance = np.abs(values[i][:, None] - task.values[None]).min(axis=1)
        assert distance.max() < 1e-9
    assert found.cdf.shape == (3, 2, 50)


def test_race_refuses_more_points_than_a_table_has():
    policy = RandomSearch(space=TABLE.space)
    small = TABLE.stack([t for t in TABLE.unstack(TABLE.meta_test_tasks()) if t.data_id == 1485])
    with pytest.raises(ValueError, match="Task 0 has 350 points to ask, and 351 are needed"):
        race(policy, small, 351, key=jr.key(0))
    surrogate = FixedGP().from_scratch(4)
    with pytest.raises(ValueError, match="350 points to ask, and 351"):
        predict_uniform(surrogate, small, (1,), 350, key=jr.key(0))
