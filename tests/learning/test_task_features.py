"""Task features in `learn`: which of them may race, and when they are used."""

import math
from typing import Any

import numpy as np
import pytest

import metaprior as mp
from metaprior.learning import Budget, _budget, _rounds
from metaprior.learning._progress import Watch
from metaprior.learning._race import Race, Standing
from metaprior.learning._rounds import is_better
from metaprior.learning._screen import p_value, screened

TINY = Budget("tiny", 4, (20,), (), 2, 1)
SPACE = mp.Space(x=mp.Real(-1.0, 1.0), z=mp.Real(0.0, 10.0))


def drifting_runs(seed, lengths=(8,) * 12, *, level=0.0, drift=1.0):
    """Hills whose top moves with the temperature, or whose level does; and the temperatures."""
    rng = np.random.default_rng(seed)
    runs, temperatures = [], rng.uniform(300.0, 400.0, len(lengths))
    for length, temperature in zip(lengths, temperatures, strict=True):
        warmth = (temperature - 350.0) / 50.0
        points = rng.uniform([-1.0, 0.0], [1.0, 10.0], (length, 2))
        distance = (points[:, 0] - 0.8 * drift * warmth) ** 2 + 0.01 * (points[:, 1] - 5.0) ** 2
        runs.append((points, level * warmth - distance + 0.02 * rng.normal(size=length)))
    return runs, temperatures


def drifting_tasks(seed, **options):
    runs, temperatures = drifting_runs(seed, **options)
    return mp.Tasks.from_runs(runs, space=SPACE, features=[{"t": float(t)} for t in temperatures])


def test_p_value_counts_permutations_that_a_regression_explains_as_well():
    rng = np.random.default_rng(0)
    codes, responses = rng.uniform(size=(9, 1)), rng.normal(size=(9, 3))
    responses[:, 0] += 2.0 * codes[:, 0]
    orders = [rng.permutation(9) for _ in range(200)]

    def r_squared(y):
        # Ordinary least squares shares no code with an orthonormal basis.
        design = np.column_stack([np.ones(9), codes, codes**2])
        fitted = design @ np.linalg.lstsq(design, y, rcond=None)[0]
        return 1.0 - np.sum((y - fitted) ** 2) / np.sum((y - y.mean(axis=0)) ** 2)

    own = r_squared(responses)
    as_good = sum(r_squared(responses[order]) >= own - 1e-12 for order in orders)
    assert p_value(codes, responses, orders) == (1 + as_good) / 201
    assert p_value(codes, np.ones((9, 2)), orders) == 1.0
    assert p_value(np.ones((9, 1)), responses, orders) == 1.0


@pytest.mark.parametrize("options", [{"drift": 1.0}, {"drift": 0.0, "level": 1.0}])
def test_screened_keeps_features_that_shape_or_level_of_the_runs_depends_on(options):
    for seed in range(5):
        assert screened(drifting_tasks(seed, **options), seed=0).num_columns == 1


def test_screened_drops_nine_in_ten_features_that_mean_nothing():
    runs, _ = drifting_runs(0)
    noise = np.random.default_rng(1).normal(size=(len(runs), 80))
    told = [{f"r{i}": float(value) for i, value in enumerate(row)} for row in noise]
    found = screened(mp.Tasks.from_runs(runs, space=SPACE, features=told), seed=0)
    unrelated = [name for name, why in found.unused if "no relation" in why]
    # Two tests at 5 % keep at most a tenth: three standard errors above it.
    assert len(unrelated) / 80 > 0.9 - 3 * math.sqrt(0.1 * 0.9 / 80)
    # What is left may race, but no more than a few.
    assert len(found.used) <= 5 and len(found.names) == 80
    assert all("stronger relation" in why for name, why in found.unused if name not in unrelated)


def test_screened_puts_the_feature_first_that_runs_depend_on_most():
    runs, temperatures = drifting_runs(0, lengths=(8,) * 20)
    noise = np.random.default_rng(3).normal(size=(len(runs), 60))
    told = [
        {**{f"r{i}": float(value) for i, value in enumerate(row)}, "t": float(t)}
        for row, t in zip(noise, temperatures, strict=True)
    ]
    found = screened(mp.Tasks.from_runs(runs, space=SPACE, features=told), seed=0)
    assert len(found.used) > 1 and found.used[0].name == "t"


def test_screened_keeps_nothing_of_so_few_tasks_that_nothing_can_be_told():
    assert screened(drifting_tasks(0, lengths=(8,) * 3), seed=0).num_columns == 0


def standing(scores):
    return Standing(mp.methods.FPacohMap(), 10, np.array(scores, float))


def test_is_better_wants_more_than_one_standard_error():
    other = standing([0.0, 0.0, 0.0, 0.0])
    # Differences 1 +- 1 with a standard error of 1.1547 / 2, and 0.5 with the same.
    assert is_better(standing([0.0, 2.0, 0.0, 2.0]), other)
    assert not is_better(standing([-0.5, 1.5, -0.5, 1.5]), other)
    assert not is_better(other, standing([-0.1, 0.3, -0.1, -0.2]))
    assert not is_better(other, other)
    diverged = standing([-math.inf] * 4)
    assert is_better(other, diverged) and not is_better(diverged, other)
    assert not is_better(standing([3.0]), standing([0.0]))


def rounds_with(monkeypatch, scores, *, interrupted_at=None, late_at=None, lanes=1):
    """What is left of three features if the best scores of a round are those of `scores`, by the
    features that it sees; and the features of each round."""
    told = [{"a": float(i), "b": float(i % 5), "c": float(i % 3)} for i in range(12)]
    runs, _ = drifting_runs(0)
    tasks = mp.Tasks.from_runs(runs, space=SPACE, features=told)
    watch, seen = Watch(100.0), []
    late = [False]
    monkeypatch.setattr(watch, "share", lambda fraction: late[0] or watch.interrupted)

    def run_race(methods, tasks, folds, exam, budget, **how):
        seen.append("".join(tasks.space.names[2:]))
        assert tasks.x.shape[2] == exam.x.shape[2] == 2 + len(seen[-1])
        if len(seen) == interrupted_at:
            watch.interrupted = True
        late[0] = len(seen) == late_at
        by_run = np.array(scores[seen[-1]]) + np.array([0.1, -0.1, 0.1, -0.1])
        standing = Standing(methods[0], 20, by_run)
        leaders: Any = None  # not read
        return Race([standing], 9, methods[0], leaders, {})

    monkeypatch.setattr(_rounds, "run_race", run_race)
    methods = [[mp.methods.FPacohMap()] * 4] * lanes
    found = _rounds.best_round(
        tasks, tasks.features, methods, TINY, seed=0, watch=watch, report=lambda *_: None
    )
    return found, seen


def test_best_round_keeps_the_features_that_help_and_says_why_not_the_others(monkeypatch):
    steps = np.array([0.3, 0.1, 0.3, 0.1])
    found, seen = rounds_with(
        monkeypatch, {"": 0 * steps, "a": steps, "ab": 0.5 * steps, "ac": 2 * steps}
    )
    assert seen == ["", "a", "ab", "ac"] and found.tried == 16
    assert [feature.name for feature in found.past.features.used] == ["a", "c"]
    assert found.past.features.unused == (("b", _rounds.NO_GAIN),)
    assert found.past.tasks.space.names == ("x", "z", "a", "c")
    np.testing.assert_allclose(found.standings[0].score, 0.4)


def test_best_round_without_a_gain_is_the_one_without_features(monkeypatch):
    nothing = np.zeros(4)
    found, seen = rounds_with(monkeypatch, {"": nothing, "a": nothing, "b": nothing, "c": nothing})
    assert seen == ["", "a", "b", "c"] and found.past.features.num_columns == 0
    assert found.past.tasks.space == SPACE


def test_best_round_that_is_interrupted_keeps_what_has_joined(monkeypatch):
    steps = np.array([0.3, 0.1, 0.3, 0.1])
    scores = {"": 0 * steps, "a": steps, "ab": 9 * steps}
    found, seen = rounds_with(monkeypatch, scores, interrupted_at=3)
    assert seen == ["", "a", "ab"]
    assert [feature.name for feature in found.past.features.used] == ["a"]
    assert dict(found.past.features.unused) == {"b": _rounds.UNTRIED, "c": _rounds.UNTRIED}


def test_best_round_begins_nothing_once_the_races_have_used_their_time(monkeypatch):
    found, seen = rounds_with(monkeypatch, {"": np.zeros(4)}, late_at=1, lanes=2)
    assert seen == [""] and len(found.races) == 1 and found.tried == 4
    assert [why for _, why in found.past.features.unused] == [_rounds.UNTRIED] * 3


def test_learn_by_a_method_that_does_not_see_features_keeps_their_names():
    tasks = drifting_tasks(0)
    for method in (mp.methods.FixedGP(), mp.methods.Guarded(mp.methods.FixedGP())):
        prior = mp.learn(tasks, method=method)
        assert prior.features.names == ("t",) and prior.features.num_columns == 0
        told = prior.condition([[0.0, 5.0]], [1.0], features={"t": 340.0})
        plain = prior.condition([[0.0, 5.0]], [1.0])
        assert told.predict([[0.5, 5.0]]) == plain.predict([[0.5, 5.0]])


def test_methods_that_are_trained_by_gradients_see_features():
    seeing = (mp.methods.FPacohMap(), mp.methods.ABLR(), mp.methods.Ensemble())
    assert all(method.sees_features for method in seeing)
    assert all(mp.methods.Guarded(method).sees_features for method in seeing)
    blind = (mp.methods.FixedGP(), mp.methods.RankWeightedGP(), mp.methods.FittedGP())
    assert not any(method.sees_features for method in blind)


@pytest.fixture
def small_budget(monkeypatch):
    monkeypatch.setitem(_budget.BUDGETS, "small", Budget("small", 3, (100,), (100,), 2, 1))


@pytest.mark.slow
def test_learn_uses_a_feature_that_helps_and_ignores_one_that_does_not(small_budget):
    runs, temperatures = drifting_runs(0)
    told = [{"t": float(t)} for t in temperatures]
    learned = mp.learn(mp.Tasks.from_runs(runs, space=SPACE, features=told), budget="small")
    assert [feature.name for feature in learned.features.used] == ["t"]
    tops = {t: mp.Optimizer(learned, features={"t": t}).ask()["x"] for t in (310.0, 390.0)}
    # The tops are at -0.64 and 0.64.
    assert tops[310.0] < -0.3 and tops[390.0] > 0.3
    assert learned.findings is not None
    assert any("uses task features: 't'" in note for note in learned.findings.notes)

    # A feature that means nothing changes nothing, bit for bit.
    nothing = [{"hall": "A"}] * len(runs)
    same = mp.learn(mp.Tasks.from_runs(runs, space=SPACE, features=nothing), budget="small")
    plain = mp.learn(mp.Tasks.from_runs(runs, space=SPACE), budget="small")
    assert same.contents.arrays.keys() == plain.contents.arrays.keys()
    for path, array in plain.contents.arrays.items():
        np.testing.assert_array_equal(same.contents.arrays[path], array)
