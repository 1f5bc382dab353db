"""Contenders: variants of methods, and `learn` asked in NumPy behind the same interface."""

from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

from metaprior.bo import Optimizer
from metaprior.lab.environments import TableTask, known_families
from metaprior.lab.studies import ChosenConfiguration, plan, specification_of
from metaprior.lab.studies import _asked as asked
from metaprior.lab.studies._asked import AskedPriors, LearnContender, Learnt, seed_of
from metaprior.lab.studies._calibration import uniform_exams
from metaprior.lab.studies._configurations import write_configuration
from metaprior.lab.studies._contenders import CompiledContender
from metaprior.lab.studies._entrants import EntrantName, canonical_name, search_ranges
from metaprior.lab.studies._line_up import contender_of
from metaprior.lab.studies._repetitions import histories, keys_of, optima, split_each, unseen_tasks
from metaprior.learning import learn
from metaprior.lifelong import Version, untrained_prior
from metaprior.methods import FixedGP, settings_of

SMALL: dict[str, Any] = {
    "environments": "mixture1d",
    "past_tasks": 3,
    "past_steps": 4,
    "budget": "fast",
}


def job_of(kind, method, **fields):
    specification = specification_of(kind, preset="smoke", methods=method, **fields)
    return plan(specification)[0].specification


def test_canonical_names_keep_variants_in_order_and_once():
    assert canonical_name(" fpacohmap+Restless+unrefined+restless") == (
        "FPacohMap+restless+unrefined"
    )
    assert canonical_name("learn") == "Learn" and canonical_name("LEARN+versions")
    assert canonical_name("FPacohMap+") is None and canonical_name(3) is None
    assert EntrantName.of("ABLR").acquisition("ucb") == "ucb"
    assert EntrantName.of("ABLR+unrefined+latent").acquisition("ucb") == "latent"


def test_unrefined_entrants_keep_what_was_learned():
    """No spread of noise and scale, whatever a search chose; and nothing to search there."""
    made = contender_of(job_of("offline", "FPacohMap+unrefined+restless"))
    assert isinstance(made, CompiledContender)
    settings = settings_of(made.method)
    assert settings["noise_log_spread"] == settings["scale_log_spread"] == 0.0
    assert made.acquisition == "restless"
    spreads = {"noise_log_spread", "scale_log_spread"}
    assert (
        search_ranges("FPacohMap").keys() - search_ranges("FPacohMap+unrefined").keys() == spreads
    )


def test_variants_use_their_own_configuration_or_that_of_their_method(tmp_path):
    def write(name, **settings):
        write_configuration(tmp_path, ChosenConfiguration("mixture1d", name, settings, {}, {}))

    def settings_of(name):
        fields: dict[str, Any] = {"environments": "mixture1d", "configurations": tmp_path}
        return job_of("offline", name, **fields)["settings"]

    write("FPacohMap", kappa=0.3, noise_log_spread=1.0)
    assert settings_of("FPacohMap")["noise_log_spread"] == 1.0
    assert settings_of("FPacohMap+unrefined")["kappa"] == 0.3
    assert settings_of("FPacohMap+unrefined")["noise_log_spread"] == 0.0
    write("FPacohMap+unrefined", kappa=0.2)
    assert settings_of("FPacohMap+unrefined")["kappa"] == 0.2
    assert settings_of("FPacohMap+restless")["kappa"] == 0.3


def test_learn_has_a_job_for_each_seed_whatever_the_block():
    fields: dict[str, Any] = {"preset": "smoke", "methods": "Learn,FixedGP", "seeds": 3, **SMALL}
    jobs = plan(specification_of("offline", **fields, block=3))
    seeds = [(job.specification["method"], job.specification["seeds"]) for job in jobs]
    # The first seeds of all come first.
    assert seeds == [("Learn", [0]), ("FixedGP", [0, 1, 2]), ("Learn", [1]), ("Learn", [2])]
    assert jobs[0].specification["settings"] == {"budget": "fast", "versions": False}


@pytest.fixture(scope="module")
def past():
    return histories("mixture1d", 3, 4, (0, 1), None)


@pytest.fixture(scope="module")
def priors(past):
    """Two priors of different pasts, quickly learned."""
    return AskedPriors(tuple(Learnt(learn(each, method=FixedGP())) for each in past))


def test_asked_priors_race_as_their_optimizer_does(priors):
    keys = split_each([keys_of(seed).race for seed in (0, 1)], 2)
    tasks = unseen_tasks("mixture1d", 2, (0, 1))
    found = priors.race(tasks, 3, keys=keys, noise_std=0.0)
    assert found.x.shape == (2, 2, 3, 1)
    assert found.values.shape == found.values_at_predicted_best.shape == (2, 2, 3)
    np.testing.assert_array_equal(found.values, found.y)
    task = jax.tree.map(lambda leaf: leaf[1, 0], tasks)
    optimizer = Optimizer(priors.entries[1].prior, seed=seed_of(keys[1, 0]))
    for t in range(3):
        query = optimizer.ask()
        optimizer.tell(query, float(task.evaluate([query])[0]))
        assert optimizer.observations[t][1] == pytest.approx(found.values[1, 0, t], rel=1e-12)
    best = optima("mixture1d", 2, (0, 1))[..., None]
    assert (found.values <= best + 1e-9).all()
    assert (found.values_at_predicted_best <= best + 1e-9).all()


def test_asked_priors_predict_best_where_the_mean_is_largest(priors):
    """Against a fine grid, after four observations."""
    prior, rng = priors.entries[0].prior, np.random.default_rng(0)
    x, y = rng.uniform(size=(4, 1)), rng.normal(size=4)
    grid = np.linspace(0.0, 1.0, 5001)[:, None]
    mean = prior.belief.condition(x, y).moments(grid).mean
    found = asked._predicted_best(prior, x, y, None, rng)
    assert prior.belief.condition(x, y).moments(found[None]).mean[0] >= mean.max() - 1e-9
    row = asked._predicted_best(prior, x, y, grid[::50], rng)
    assert row == grid[::50][np.argmax(mean[::50])]


def test_asked_priors_ask_each_row_of_a_table_once():
    family = known_families()["glmnet"]
    prior = AskedPriors((Learnt(untrained_prior(family.space, "maximize")),))
    tasks = unseen_tasks("glmnet", 2, (0,))
    assert isinstance(tasks, TableTask)
    keys = split_each([keys_of(0).race], 2)
    found = prior.race(tasks, 4, keys=keys, noise_std=0.0)
    for i in range(2):
        rows = np.asarray(tasks.points[0, i])
        nearest = np.abs(rows[None] - found.x[0, i][:, None]).sum(axis=2).argmin(axis=1)
        np.testing.assert_allclose(found.x[0, i], rows[nearest], atol=1e-9)
        assert len(set(nearest.tolist())) == 4
        np.testing.assert_allclose(found.values[0, i], tasks.values[0, i][nearest], rtol=1e-12)


def test_asked_priors_judge_as_the_compiled_surrogate_does(past, priors):
    tasks = unseen_tasks("mixture1d", 2, (0, 1))
    keys = split_each([keys_of(seed).race for seed in (0, 1)], 2)
    exams = uniform_exams(tasks, 3, 20, keys=keys)
    fixed = contender_of(job_of("calibration", "FixedGP", environments="mixture1d"))
    learned = fixed.learn(past, keys=jax.random.split(jax.random.key(0)))
    for mine, theirs in zip(priors.judge(exams, (0, 3)), learned.judge(exams, (0, 3)), strict=True):
        assert mine.shape == (2, 2, 2, 20)
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


class Judged:
    """In place of `learn_version`: a prior for each number of runs, kept as told."""

    def __init__(self, kept):
        self.kept, self.before = kept, []

    def __call__(self, number, tasks, names, *, before, budget, seed):
        assert len(names) == tasks.num_tasks == number and budget == "fast"
        self.before.append(None if before is None else before[0].number)
        record = Version(number, names, 0.0, {}, 1.0, self.kept[number], "", "")
        return record, untrained_prior(tasks.space, "maximize")


def test_learn_keeps_the_version_before_where_the_new_one_is_worse(past, monkeypatch):
    judged = Judged({2: True, 3: False})
    monkeypatch.setattr(asked, "learn_version", judged)
    contender = LearnContender(past[0].space, "fast", versions=True)
    keys = jax.random.split(jax.random.key(0), 1)
    first = contender.learn([past[0].subset([0])], keys=keys, before=contender.begin(1))
    assert first.entries[0].version is None  # one run teaches nothing
    second = contender.learn([past[0].subset([0, 1])], keys=keys, before=first)
    third = contender.learn([past[0]], keys=keys, before=second)
    assert judged.before == [None, 2]
    assert third.entries[0] is second.entries[0]
    version = second.entries[0].version
    assert version is not None and version.number == 2


@pytest.mark.study
@pytest.mark.parametrize("kind", ["offline", "supervised", "calibration"])
def test_learn_takes_part_in_every_study(kind):
    fields: dict[str, Any] = {"tasks": 2, "steps": 2} if kind == "offline" else {}
    small = {**SMALL, "past_tasks": 4}
    found = pd.DataFrame(
        plan(specification_of(kind, preset="smoke", methods="Learn", seeds=1, **small, **fields))[
            0
        ].run()
    )
    assert len(found) and np.isfinite(found.select_dtypes(float).to_numpy()).all()


@pytest.mark.study
def test_learn_takes_part_in_the_lifelong_study():
    fields: dict[str, Any] = {
        "environments": "mixture1d",
        "budget": "fast",
        "runs": 3,
        "steps": 2,
        "seeds": 1,
    }
    (job,) = plan(specification_of("lifelong", preset="smoke", methods="Learn+versions", **fields))
    found = pd.DataFrame(job.run())
    assert found.groupby("run").size().tolist() == [2, 2, 2]
    assert (found["simple_regret"].to_numpy() >= -1e-9).all()
    assert np.isfinite(found["inference_regret"].to_numpy()).all()
