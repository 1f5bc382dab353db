"""The paper's studies: protocols, and numbers against what shares no code with them."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from metaprior.data import Tasks, empty_run
from metaprior.lab.environments import (
    TEST_IDS,
    Mixture1d,
    Table,
    TableTask,
    known_families,
)
from metaprior.lab.policies import CompiledConfidenceBound, RandomSearch, SurrogatePolicy, optimise
from metaprior.lab.studies import (
    ChosenConfiguration,
    Job,
    collect_histories,
    plan,
    race,
    run_calibration,
    run_lifelong,
    run_offline,
    run_search,
    run_supervised,
    specification_of,
    summary,
)
from metaprior.lab.studies import _contenders as contenders
from metaprior.lab.studies import _search as search
from metaprior.lab.studies._batches import race_each, rows_of, with_room
from metaprior.lab.studies._choice import choose
from metaprior.lab.studies._draws import draw_numbers, draw_shapes
from metaprior.lab.studies._entrants import RANDOM_SEARCH, search_ranges
from metaprior.lab.studies._presets import KINDS, POLICIES, SEARCHED
from metaprior.lab.studies._repetitions import (
    VALIDATION_SEED,
    histories,
    keys_of,
    optima,
    split_each,
    uniform_histories,
    unseen_tasks,
)
from metaprior.lab.studies._supervised import split
from metaprior.methods import FixedGP, RankWeightedGP, known_methods

SMALL: dict[str, Any] = {"environments": "mixture1d", "past_tasks": 4, "past_steps": 5}


def small(kind, methods, **fields):
    """The jobs of a tiny study on mixtures, all seeds of a method in one."""
    if kind == "lifelong":
        fields = {"environments": "mixture1d", **fields}
    else:
        fields = SMALL | fields
    return plan(specification_of(kind, preset="smoke", methods=methods, num_steps=20, **fields))


def columns_of(columns, *names):
    return {tuple(row) for row in np.column_stack([columns[name] for name in names]).tolist()}


# Repetitions


@pytest.mark.study
def test_histories_of_many_seeds_are_those_of_one_seed():
    found = histories("mixture1d", 4, 5, (0, 1), None)
    for seed, mine in zip((0, 1), found, strict=True):
        theirs = collect_histories(Mixture1d(), 4, 5, key=keys_of(seed).history)
        np.testing.assert_allclose(mine.x, theirs.x, atol=1e-6)
        np.testing.assert_allclose(mine.y, theirs.y, atol=1e-6)
    assert not np.allclose(found[0].y, found[1].y)


def test_unseen_tasks_of_tables_are_validation_datasets_in_a_search_only():
    seen = unseen_tasks("glmnet", 3, (VALIDATION_SEED, VALIDATION_SEED + 1))
    reported = unseen_tasks("glmnet", 99, (0, 1))
    assert isinstance(seen, TableTask) and isinstance(reported, TableTask)
    assert not set(np.asarray(seen.data_id).ravel()) & set(TEST_IDS)
    assert set(np.asarray(reported.data_id).ravel()) <= set(TEST_IDS)
    assert reported.data_id.shape == optima("glmnet", 99, (0, 1)).shape == (2, 12)


@pytest.mark.slow
def test_search_never_asks_for_test_tasks(monkeypatch):
    def forbidden(self, num, *, key):
        raise AssertionError("a test task was touched")

    for family in (Mixture1d, Table):
        monkeypatch.setattr(family, "test_tasks", forbidden)
    (job,) = small("search", "FixedGP", draws=2, steps=3, seeds=2)
    assert min(job.specification["seeds"]) >= VALIDATION_SEED
    assert np.isfinite(job.run()["simple_regret"]).all()
    (reporting,) = small("offline", "RandomSearch", steps=3, tasks=5, seeds=3)
    with pytest.raises(AssertionError, match="a test task was touched"):  # the control
        reporting.run()


# Offline


@pytest.fixture(scope="module")
def offline():
    jobs = small("offline", "FixedGP,RandomSearch", seeds=2, tasks=3, steps=6)
    return {job.specification["method"]: job.run() for job in jobs}


def test_offline_regret_has_a_row_for_each_seed_task_and_step(offline):
    for columns in offline.values():
        assert list(columns) == ["seed", "task", "step", "simple_regret", "inference_regret"]
        expected = {(s, i, t) for s in (0, 1) for i in range(3) for t in range(1, 7)}
        assert columns_of(columns, "seed", "task", "step") == expected
        regret = columns["simple_regret"].reshape(2, 3, 6)
        assert (np.diff(regret, axis=2) <= 0).all() and (regret >= -1e-9).all()
    assert np.isnan(offline["RandomSearch"]["inference_regret"]).all()
    assert (offline["FixedGP"]["inference_regret"] >= -1e-9).all()


@pytest.mark.slow
def test_offline_run_is_the_run_of_its_surrogate(offline):
    """One seed and task, by the loop itself with a surrogate trained alone."""
    keys = keys_of(1)
    past = collect_histories(Mixture1d(), 4, 5, key=keys.history)
    surrogate = FixedGP().meta_train(past, key=keys.train)
    policy = SurrogatePolicy(
        surrogate=surrogate, acquisition=CompiledConfidenceBound(), space=Mixture1d.space
    )
    task = jax.tree.map(
        lambda leaf: jnp.asarray(leaf[2]), Mixture1d().test_tasks(3, key=keys.tasks)
    )
    trace = jax.jit(lambda task, key: optimise(task, policy, 6, key=key, infer=True))(
        task, jr.split(keys.race, 3)[2]
    )
    grid = task.evaluate(np.linspace(-10, 10, 200_001)[:, None])
    expected = grid.max() - np.maximum.accumulate(np.asarray(trace.values))
    found = offline["FixedGP"]["simple_regret"].reshape(2, 3, 6)[1, 2]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    inferred = offline["FixedGP"]["inference_regret"].reshape(2, 3, 6)[1, 2]
    np.testing.assert_allclose(
        inferred, grid.max() - np.asarray(trace.values_at_predicted_best), atol=1e-6
    )


@pytest.mark.study
def test_study_of_many_seeds_per_job_equals_one_seed_per_job():
    (together,) = small("offline", "LearnedGP", seeds=2, tasks=3, steps=6)
    jobs = small("offline", "LearnedGP", seeds=2, tasks=3, steps=6, block=1)
    assert [job.specification["seeds"] for job in jobs] == [[0], [1]]
    alone = np.concatenate([job.run()["simple_regret"] for job in jobs])
    np.testing.assert_allclose(alone, together.run()["simple_regret"], atol=1e-6)


@pytest.mark.parametrize("chunk", [1, 2, None])
def test_race_each_equals_one_race_after_another(chunk, monkeypatch):
    """As on an accelerator: chunks of two of three entries, and all at once."""
    monkeypatch.setattr("metaprior.lab.studies._batches.chunk_here", lambda chunk: chunk)
    tasks = unseen_tasks("mixture1d", 2, (0, 1, 2))
    keys = split_each([keys_of(seed).race for seed in (0, 1, 2)], 2)
    policy = RandomSearch(Mixture1d.space)
    found = race_each(policy, tasks, 4, keys=keys, noise_std=0.1, chunk=chunk)
    assert found.x.shape == (3, 2, 4, 1)
    for i in range(3):
        entry = jax.tree.map(lambda leaf, i=i: leaf[i], tasks)
        alone = race(policy, entry, 4, key=keys_of(i).race, noise_std=0.1)
        for mine, theirs in zip(found, alone, strict=True):
            np.testing.assert_allclose(mine[i], theirs, rtol=1e-12)


# Supervised


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**31 - 1), st.integers(4, 9), st.integers(2, 9))
def test_supervised_halves_are_disjoint_and_complete(seed, num_tasks, length):
    x = np.zeros((num_tasks, length, 1))
    history = Tasks(Mixture1d.space, x, x[..., 0], np.ones((num_tasks, length), bool))
    halves = split(history, key=jr.key(seed))
    assert sorted([*halves.learn, *halves.predict]) == list(range(num_tasks))
    assert len(halves.learn) == num_tasks // 2
    both = np.concatenate([halves.context, halves.test], axis=1)
    assert (np.sort(both, axis=1) == np.arange(length)).all()
    assert halves.context.shape[1] == length // 2


def test_supervised_metrics_are_those_of_scikit_learn():
    (job,) = small("supervised", "FixedGP", seeds=2, readings="collected")
    columns = job.run()
    history = histories("mixture1d", 4, 5, (0, 1), None)[1]
    halves = split(history, key=keys_of(1).tasks)
    observed = history.mask[halves.learn]
    x_all, y_all = history.x[halves.learn][observed], history.y[halves.learn][observed]
    levels = np.linspace(0, 1, 20)
    for i, task in enumerate(halves.predict):
        x = (history.x[task] - x_all.mean(axis=0)) / x_all.std(axis=0)
        y = (history.y[task] - y_all.mean()) / y_all.std()
        context, test = halves.context[i], halves.test[i]
        model = GaussianProcessRegressor(RBF(0.2, "fixed"), alpha=1e-4)
        mean, std = map(
            np.asarray, model.fit(x[context], y[context]).predict(x[test], return_std=True)
        )
        std = np.sqrt(std**2 + 1e-4)
        row = (columns["seed"] == 1) & (columns["task"] == task)
        assert row.sum() == 1
        expected = norm.logpdf(y[test], mean, std).mean() - np.log(y_all.std())
        np.testing.assert_allclose(columns["log_likelihood"][row], expected, rtol=1e-4)
        rmse = y_all.std() * np.sqrt(np.mean((mean - y[test]) ** 2))
        np.testing.assert_allclose(columns["rmse"][row], rmse, rtol=1e-4)
        frequency = [(norm.cdf(y[test], mean, std) <= q).mean() for q in levels]
        error = np.sqrt(np.mean((frequency - levels) ** 2))
        np.testing.assert_allclose(columns["calibration_error"][row], error, rtol=1e-6)


def test_supervised_readings_share_tasks_and_differ_in_points():
    collected, uniform = (
        each("mixture1d", 4, 50, (0, 1), None) for each in (histories, uniform_histories)
    )
    tasks = Mixture1d().training_tasks(4, key=jr.split(keys_of(1).history)[0])
    for past in (collected[1], uniform[1]):
        for i, task in enumerate(Mixture1d().unstack(tasks)):
            points = past.space.decode(past.x[i, :50])
            np.testing.assert_allclose(past.y[i, :50], task.evaluate(points), rtol=1e-6)
    # GP-UCB crowds around the optimum; uniform points do not.
    near = [np.median(np.abs(p[1].x - p[1].x[:, [-1]])[:, :50]) for p in (collected, uniform)]
    assert near[0] < near[1]
    jobs = small("supervised", "FixedGP", seeds=1)
    assert [job.specification["reading"] for job in jobs] == ["collected", "uniform"]


def test_supervised_units_and_pooled_errors():
    """One job: standardised units differ by a constant, pooled errors are one per seed."""
    (job,) = small("supervised", "FixedGP", seeds=2, readings="uniform")
    found = pd.DataFrame(job.run())
    shift = found["log_likelihood_standardised"] - found["log_likelihood"]
    for seed, past in enumerate(uniform_histories("mixture1d", 4, 5, (0, 1), None)):
        halves = split(past, key=keys_of(seed).tasks)
        expected = np.log(past.y[halves.learn, :5].std())
        np.testing.assert_allclose(shift[found["seed"] == seed], expected, rtol=1e-9)
    assert found.groupby("seed")["calibration_error_pooled"].nunique().tolist() == [1, 1]
    pooled, single = (
        found[name].to_numpy() for name in ("calibration_error_pooled", "calibration_error")
    )
    assert pooled.mean() < single.mean()


# Calibration


def test_calibration_study_by_hand():
    (job,) = small("calibration", "FixedGP", seeds=2, tasks=2, points=40, contexts=[0, 3])
    columns = job.run()
    frequency = columns["frequency"].reshape(2, 2, 2, 21)
    assert (np.diff(frequency, axis=3) >= 0).all()
    assert (frequency[..., 0] == 0).all() and (frequency[..., -1] == 1).all()
    assert columns_of(columns, "seed", "context") == {(0, 0), (0, 3), (1, 0), (1, 3)}
    errors = columns["calibration_error"].reshape(8, 21)
    assert (errors == errors[:, :1]).all() and (errors < 1).all()
    nothing, little = (columns["log_likelihood"][columns["context"] == size] for size in (0, 3))
    assert little.mean() > nothing.mean()


# Lifelong


@pytest.fixture(scope="module")
def life():
    """Three runs of two lives, and the numbers of past runs that each training had."""
    trained = []
    train_each = contenders.train_each

    def counted(methods, past, **how):
        trained.append([each.num_tasks for each in past])
        return train_each(methods, past, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contenders, "train_each", counted)
        (job,) = small("lifelong", "FixedGP", seeds=2, sequences=1, runs=3, steps=4)
        return job.run(), trained


@pytest.mark.study
def test_lifelong_trains_after_each_run_on_all_runs_so_far(life):
    columns, trained = life
    assert trained == [[1, 1], [2, 2]]
    expected = {(0, s, r, t) for s in (0, 1) for r in (1, 2, 3) for t in (1, 2, 3, 4)}
    assert columns_of(columns, "sequence", "seed", "run", "step") == expected
    assert (columns["simple_regret"] >= -1e-9).all()


@pytest.mark.study
def test_lifelong_first_run_is_that_of_a_fixed_gp(life):
    columns, _ = life
    policy = SurrogatePolicy(
        surrogate=FixedGP().from_scratch(1),
        acquisition=CompiledConfidenceBound(),
        space=Mixture1d.space,
    )
    run = jax.jit(lambda task, key: optimise(task, policy, 4, key=key, infer=True))
    tasks = Mixture1d().test_tasks(3, key=keys_of(0).tasks)
    best = optima("mixture1d", 3, (0,))[0]
    for i in range(2):
        task = jax.tree.map(lambda leaf, i=i: jnp.asarray(leaf[i]), tasks)
        key = jr.fold_in(jr.fold_in(keys_of(1).race, 0), i)
        trace = run(task, key)
        by_fixed_gp = best[i] - np.maximum.accumulate(trace.values), trace.values_at_predicted_best
        simple, inference = (
            columns[name].reshape(2, 3, 4)[1, i] for name in ("simple_regret", "inference_regret")
        )
        same = np.allclose(simple, by_fixed_gp[0], atol=1e-6)
        same &= np.allclose(best[i] - inference, by_fixed_gp[1], atol=1e-6)
        assert same == (i == 0)  # the second run is made by who has learned from the first


@pytest.mark.study
def test_with_room_does_not_change_an_ensemble():
    """Empty runs stand for runs to come: they are given no weight."""
    rng = np.random.default_rng(0)
    runs = [(rng.uniform(-10, 10, (5, 1)), rng.normal(size=5)) for _ in range(2)]
    past = Tasks.from_runs(runs, space=Mixture1d.space)
    method = RankWeightedGP(num_steps=2, num_samples=16)
    predict = jax.jit(lambda surrogate, x: surrogate.condition(empty_run(4, 1)).moments(x))
    alone, roomy, single = (
        method.meta_train(each, key=jr.key(1))
        for each in (past, with_room(past, 6), with_room(past.subset([0]), 6))
    )
    assert roomy.past.mask.shape[0] > alone.past.mask.shape[0]
    mine, theirs, other = (predict(each, jnp.array([0.55])) for each in (roomy, alone, single))
    np.testing.assert_allclose(mine.mean, theirs.mean, rtol=1e-6)
    np.testing.assert_allclose(mine.variance, theirs.variance, rtol=1e-6)
    assert np.isfinite(other.mean) and not np.allclose(other.mean, theirs.mean, rtol=1e-3)


# CompiledSearch


def test_search_draws_stay_in_their_ranges_and_repeat():
    ranges = search_ranges("NeuralProcess")
    shapes = draw_shapes("NeuralProcess", ranges, 8, 0)
    assert len({json.dumps(shape) for shape in shapes}) == 8
    assert all(set(shape) == {"width", "depth", "latent_dim", "batch_size"} for shape in shapes)
    drawn = [draw_numbers("NeuralProcess", ranges, i, 0) for i in range(200)]
    rates = np.array([each["learning_rate"] for each in drawn])
    assert (rates >= 1e-4).all() and (rates <= 1e-2).all()
    # Uniform in the logarithm: half of them lie below the geometric mean, up to 4 standard errors.
    assert abs((rates < 1e-3).mean() - 0.5) < 4 * 0.5 / np.sqrt(200)
    assert {each["num_steps"] for each in drawn} == {1000, 4000, 16000}
    assert draw_numbers("NeuralProcess", ranges, 3, 0) == drawn[3]
    assert draw_shapes("FixedGP", search_ranges("FixedGP"), 8, 0) == [{}]


def test_full_studies_have_every_method_and_everybody_who_learns():
    everybody = {*known_methods(), "Learn"} - {"AveragedGP", "Ensemble", "Guarded", "Weighed"}
    everybody -= {"SelfStandardisedGP"}
    for kind in ("offline", "lifelong", "supervised", "calibration"):
        methods = set(specification_of(kind, preset="full")["methods"])
        assert methods >= everybody
        assert (RANDOM_SEARCH in methods) == (kind in ("offline", "lifelong"))
    arms = {"FPacohMap+unrefined", "PacohMap+unrefined", "FPacohMap+restless"}
    assert set(POLICIES) >= arms | {"NeuralProcess+latent"}
    assert "Learn+versions" in specification_of("lifelong", preset="full")["methods"]


@pytest.mark.parametrize("name", SEARCHED)
def test_search_ranges_of_every_searched_method_can_be_drawn(name):
    ranges = search_ranges(name)
    settings = draw_shapes(name, ranges, 3, 0)[0] | draw_numbers(name, ranges, 0, 0)
    assert set(settings) == set(ranges) and len(settings) >= 3


def test_search_covers_every_configuration_once():
    jobs = small("search", "FPacohMap", draws=10, shapes=3, seeds=2)
    assert len(jobs) == 3
    indices = [i for job in jobs for i in job.specification["configurations"]]
    assert sorted(indices) == list(range(10))
    sizes = {job.specification["settings"]["batch_size"] for job in jobs}
    assert sizes <= {4, 10} and "num_steps" not in jobs[0].specification["ranges"]


def test_search_divides_configurations_into_jobs():
    jobs = small("search", "FPacohMap", draws=10, shapes=2, block=2)
    assert [job.specification["configurations"] for job in jobs] == [
        *([0, 2], [4, 6], [8]),
        *([1, 3], [5, 7], [9]),
    ]
    cut = specification_of("search", preset="smoke", cuts={"block": 1, "chunk": 5})
    assert "block" not in cut and cut["chunk"] == 5


def test_search_judges_all_numbers_of_steps_as_checkpoints():
    fields: dict[str, Any] = {"preset": "smoke", "environments": "mixture1d"}
    specification = specification_of("search", methods="FPacohMap,FixedGP", **fields)
    specification.pop("num_steps")
    checkpoints = {
        j.specification["method"]: j.specification["checkpoints"] for j in plan(specification)
    }
    assert checkpoints == {"FPacohMap": [2000, 4000, 8000], "FixedGP": []}
    (fixed,) = plan(specification_of("search", methods="FPacohMap", num_steps=70, **fields))
    assert fixed.specification["checkpoints"] == [70]


@pytest.mark.parametrize(("name", "priors"), [("branin", 3), ("glmnet", 5), ("lcbench", 4)])
def test_search_has_more_priors_where_tasks_are_few(name, priors):
    """At least 30 pairs of prior and task: 3 x 10, 5 x 6 of 18, 4 x 8 of 24."""
    specification = specification_of("search", preset="full", environments=name, methods="FixedGP")
    (job,) = plan(specification)
    assert job.specification["seeds"] == [VALIDATION_SEED + i for i in range(priors)]


@pytest.mark.study
def test_search_records_all_measures_at_each_checkpoint(monkeypatch):
    specification = specification_of(
        "search", preset="smoke", methods="FPacohMap", draws=2, steps=3, **SMALL
    )
    specification["num_steps"] = 4
    (job,) = plan(specification)
    asked = {**job.specification, "checkpoints": [2, 4]}
    found = pd.DataFrame(run_search(asked))
    assert found.groupby(["configuration", "num_steps"]).size().tolist() == [6, 6, 6, 6]
    assert found["diverged"].tolist() == [False] * 24
    # Runs have 3 queries, all of them early.
    assert found["early_regret"].tolist() == found["simple_regret"].tolist()
    assert np.isfinite(found[["inference_regret", "log_likelihood"]].to_numpy()).all()
    drawn = {json.loads(each)["num_steps"] for each in found["drawn"]}
    assert drawn == {2, 4}
    last = pd.DataFrame(run_search({**asked, "checkpoints": [4]}))
    assert last.equals(found[found["num_steps"] == 4].reset_index(drop=True))


@pytest.mark.study
def test_search_drops_and_counts_a_diverging_configuration(monkeypatch):
    (job,) = small("search", "LearnedGP", draws=3, shapes=1, steps=3, seeds=2)
    numbers = search.draw_numbers
    monkeypatch.setattr(
        search,
        "draw_numbers",
        lambda *drawn: numbers(*drawn) | ({"learning_rate": 1e200} if drawn[2] == 1 else {}),
    )
    found = pd.DataFrame(job.run())
    assert found.groupby("configuration")["diverged"].all().tolist() == [False, True, False]
    assert found["simple_regret"].isna().tolist() == found["diverged"].tolist()
    chosen = choose(found, "study")
    assert chosen["searched"] == {"configurations": 3, "candidates": 3, "diverged": 1}
    assert chosen["scores"]["configuration"] in (0, 2)
    nothing = choose(found[found["diverged"]], "study")
    assert nothing["settings"] is None and nothing["searched"]["diverged"] == 1


# Specifications


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("preset", ["smoke", "standard", "full"])
def test_plan_of_presets_has_jobs_with_different_names(kind, preset):
    specification = specification_of(kind, preset=preset)
    jobs = plan(specification)
    assert len({job.name for job in jobs}) == len(jobs) >= 4
    assert all(Job.from_text(job.text) == job for job in jobs)
    if preset == "full":
        assert {job.specification["environment"] for job in jobs} >= set(known_families()) - {
            "mixture1d"
        }
        assert plan(json.loads(json.dumps(specification))) == jobs


def test_specification_of_full_studies_has_the_sizes_of_the_paper():
    offline = specification_of("offline", preset="full")
    assert (offline["seeds"], offline["tasks"], offline["steps"]) == (25, 10, 100)
    sizes = {e["environment"]: (e["past_tasks"], e["past_steps"]) for e in offline["entrants"]}
    assert sizes["hartmann6"] == (30, 100) and sizes["branin"] == (20, 20)
    lifelong = specification_of("lifelong", preset="full")
    assert [lifelong[name] for name in ("sequences", "seeds", "runs", "steps")] == [25, 1, 10, 20]
    assert specification_of("search", preset="full")["draws"] == 128


def test_specification_takes_flags_before_files_before_presets(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text('kind = "offline"\nseeds = 7\nsteps = 9\nmethods = ["fixedgp"]\nblock = 3\n')
    found = specification_of(
        "offline", preset="smoke", file=file, steps=11, cuts={"block": 1, "chunk": 5, "seeds": 99}
    )
    assert (found["seeds"], found["steps"], found["tasks"]) == (7, 11, 3)
    assert found["methods"] == ["FixedGP"] and (found["block"], found["chunk"]) == (3, 5)
    settings = found["entrants"][0]["settings"]
    assert settings == {"lengthscale": 0.2, "variance": 1.0, "noise_variance": 1e-4, "kernel": None}


def test_specification_reads_chosen_configurations(tmp_path):
    chosen = ChosenConfiguration("mixture1d", "FixedGP", {"lengthscale": 0.7}, {}, {})
    path = search.write_configuration(tmp_path / "configurations", chosen)
    found = specification_of(
        "offline", preset="smoke", configurations=tmp_path, methods="FixedGP,RandomSearch"
    )
    by_place = {(e["environment"], e["method"]): e for e in found["entrants"]}
    assert by_place["mixture1d", "FixedGP"]["settings"]["lengthscale"] == 0.7
    assert by_place["mixture1d", "FixedGP"]["configuration"] == "searched"
    assert by_place["glmnet", "FixedGP"]["configuration"] == "default"
    path.write_text("{")
    with pytest.raises(ValueError, match="is not valid JSON .* run the search again"):
        specification_of("offline", configurations=tmp_path, environments="mixture1d")


@pytest.mark.parametrize(
    "kind, fields, sentence",
    [
        ("online", {}, "There is no study 'online'; run one of supervised, offline, "),
        ("offline", {"methods": "GP"}, "There is no 'GP' among the methods; name ABLR, "),
        ("offline", {"methods": "ABLR+x"}, "There is no 'ABLR+x' among the methods; name ABLR, "),
        (
            "offline",
            {"methods": "NeuralProcess+unrefined"},
            "NeuralProcess has no variant 'unrefined'; leave it out.",
        ),
        ("offline", {"methods": "Learn+versions"}, "Learn+versions keeps versions from run to run"),
        ("offline", {"budget": 10}, "`budget` is 10; name one, since seconds give other records"),
        ("offline", {"budget": "big"}, "The budget is 'big'; give one of fast, normal, thorough"),
        ("search", {"criterion": "luck"}, "There is no criterion 'luck'; give study or paper."),
        ("search", {"methods": "Learn"}, "Learn chooses for itself; leave it out of the search."),
        ("offline", {"environments": []}, "A study needs environments; name some of mixture1d, "),
        ("offline", {"environments": 3}, "There is no 3 among the environments; name "),
        ("offline", {"seeds": 0}, "`seeds` is 0; give a whole number >= 1."),
        ("offline", {"steps": True}, "`steps` is True; give a whole number >= 1."),
        ("offline", {"draws": 3}, "A study of kind offline has no 'draws'; it has environments, "),
        (
            "offline",
            {"acquisition": "ei"},
            "There is no acquisition 'ei'; give ucb or restless or latent.",
        ),
        ("calibration", {"contexts": [-1]}, r"`contexts` is [-1]; give whole numbers >= 0"),
        ("supervised", {"methods": "RandomSearch"}, "RandomSearch predicts nothing"),
        ("search", {"methods": "FittedGP"}, "FittedGP has no SEARCH_RANGES to draw settings from"),
        ("supervised", {"past_tasks": 3}, "Halves of 3 runs of 20 points are too small"),
    ],
)
def test_specification_refuses_bad_input_in_one_sentence(kind, fields, sentence):
    with pytest.raises(ValueError) as raised:
        specification_of(kind, **fields)
    assert str(raised.value).startswith(sentence) and "\n" not in str(raised.value)


# What records are made of, and what is made of them


def test_rows_of_arrays_have_the_coordinates_of_their_entries():
    values = np.arange(6.0).reshape(2, 3)
    found = rows_of({"seed": [4, 9], "step": range(1, 4)}, {"a": values, "b": np.array([1.0, 2.0])})
    assert found["seed"].tolist() == [4, 4, 4, 9, 9, 9]
    assert found["step"].tolist() == [1, 2, 3, 1, 2, 3]
    assert found["a"].tolist() == [0, 1, 2, 3, 4, 5] and found["b"].tolist() == [1, 1, 1, 2, 2, 2]


def test_summary_is_of_the_last_step_in_the_order_of_the_study():
    specification = specification_of("offline", preset="smoke", environments="mixture1d")
    records = pd.DataFrame(
        {
            "environment": "mixture1d",
            "method": ["FixedGP"] * 4 + ["FPacohMap"] * 2,
            "step": [1, 2, 1, 2, 1, 2],
            "simple_regret": [9.0, 1.0, 9.0, 3.0, 5.0, 4.0],
            "inference_regret": [np.nan] * 4 + [1.0, 0.5],
        }
    )
    found = summary(specification, records)
    assert [row["method"] for row in found] == ["FPacohMap", "FixedGP"]
    assert found[0]["simple_regret"] == {"mean": 4.0, "half_width_95": None, "count": 1}
    # Two values 1 and 3: mean 2, standard error 1, Student's quantile with one degree of freedom.
    half_width = found[1]["simple_regret"]["half_width_95"]
    assert half_width == pytest.approx(12.706, abs=1e-3) and "inference_regret" not in found[1]


def test_plan_names_functions_by_their_public_place():
    kinds = {job.kind for kind in KINDS for job in plan(specification_of(kind, preset="smoke"))}
    functions = (run_supervised, run_offline, run_lifelong, run_search, run_calibration)
    assert kinds == {f"metaprior.lab.studies:{function.__name__}" for function in functions}
