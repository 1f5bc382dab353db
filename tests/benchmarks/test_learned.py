"""The benchmark of what `learn` returns: searches, predictions and its page, at a small size."""

import jax
import numpy as np
import pytest

import metaprior as mp
from benchmarks._unseen import families, past_runs, pooled_calibration, predict, search
from benchmarks.learned import ARMS, Job, page
from metaprior.metrics import calibration_error


def prior_and_task(name):
    """A prior that needs no training, and a new task with its optimum."""
    family = families()[name]
    prior = mp.learn(past_runs(family, jax.random.key(0)), method=mp.methods.AveragedGP())
    tasks = family.validation_tasks(1, key=jax.random.key(1))
    return prior, family.unstack(tasks)[0], float(family.optimum(tasks).value[0])


@pytest.mark.parametrize("name", ["branin", "rpart"])
def test_search_and_predict_ask_as_a_user_would(name):
    prior, task, optimum = prior_and_task(name)
    run = search(prior, task, optimum, 4, 0)
    regret = np.array(run["regret"])
    assert regret.shape == (4,) and len(run["trust"]) == 5
    assert np.all(np.diff(regret) <= 0.0) and np.all(regret >= -1e-6)
    cdf, density = predict(prior, task, (0, 3), 20, 0)
    assert np.shape(cdf) == (2, 20) and np.isfinite(density).all()
    again, _ = predict(prior, task, (0, 3), 20, 0)
    other, _ = predict(prior, task, (0, 3), 20, 1)
    assert again == cdf and other != cdf


def test_pooled_calibration_pools_tasks_within_a_context():
    # Each task errs to one side; together they are right, so pooling forgives what no task does.
    low, high = np.linspace(0.0, 0.5, 50), np.linspace(0.5, 1.0, 50)
    pooled = pooled_calibration([[low.tolist()], [high.tolist()]])
    assert pooled == calibration_error(np.concatenate([low, high]))
    assert pooled < 0.02 < min(calibration_error(low), calibration_error(high))


def test_page_shows_the_mean_over_priors_of_the_mean_over_tasks():
    def found(value):
        return {
            arm: {"regret": [[value] * 20, [3 * value] * 20], "density": [1.0], "error": [0.1]}
            for arm in ARMS
        }

    records = {tuple(Job("branin", seed, 2)): found(seed + 1.0) for seed in (0, 1)}
    text = page(records, "the command")
    assert "## branin, 2-d" in text and "## rpart" not in text
    assert "the command" in text and "2 priors, 2 tasks each." in text
    # 2 and 4: their mean, and Student's interval of two numbers, 12.7 standard errors of 1.
    assert text.count("3 ± 1e+01") == len(ARMS) * 5
