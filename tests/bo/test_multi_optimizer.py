"""Ask and tell with several values: objectives that compete, and constraints."""

import math

import numpy as np
import pytest

import metaprior as mp
from metaprior.bo import Search
from metaprior.methods import SelfStandardisedGP, TrainedContents

SEARCH = Search(num_global=128, num_local=32, num_starts=4, num_steps=6)
SPACE = mp.Space(x=mp.Real(-5.0, 5.0))


def prior(direction="maximize", space=SPACE):
    method = SelfStandardisedGP(lengthscale=1.0, noise_variance=1e-6)
    surrogate = method.blank_surrogate(space.num_inputs)
    return mp.Prior(space, direction, TrainedContents(method, surrogate))


def values_at(point):
    """Quality is best at 1, cost is least at -1: all between them is a compromise."""
    return {"quality": -((point["x"] - 1.0) ** 2), "cost": (point["x"] + 1.0) ** 2}


def two(**settings):
    priors = mp.Priors({"quality": prior(), "cost": prior("minimize")})
    return mp.MultiOptimizer(priors, search=SEARCH, **settings)


def limited(learned=True, **settings):
    """One objective that is best at 3, and allowed up to 1."""
    constraint = prior("minimize") if learned else None
    priors = mp.Priors({"quality": prior()}, constraints={"excess": constraint})
    return mp.MultiOptimizer(priors, search=SEARCH, **settings)


def limited_values(point):
    return {"quality": -((point["x"] - 3.0) ** 2), "excess": point["x"] - 1.0}


def play(optimizer, num_queries, values=values_at):
    for _ in range(num_queries):
        point = optimizer.ask()
        optimizer.tell(point, values(point))
    return optimizer


def test_multi_optimizer_finds_the_whole_front():
    optimizer = play(two(seed=1), 14)
    found = sorted(outcome.x["x"] for outcome in optimizer.front)
    assert len(found) >= 8
    assert min(found) < -0.6 and max(found) > 0.6
    assert max(np.diff([x for x in found if -1 <= x <= 1])) < 0.6


def test_multi_optimizer_is_reproducible():
    first, second = play(two(seed=3), 4), play(two(seed=3), 4)
    assert first.observations == second.observations


def test_multi_optimizer_front_has_no_point_that_another_beats():
    optimizer = two()
    for x, quality, cost in [(0.0, 1.0, 1.0), (1.0, 2.0, 2.0), (2.0, 0.5, 1.5), (3.0, 2.0, 1.9)]:
        optimizer.tell({"x": x}, {"quality": quality, "cost": cost})
    assert [outcome.x["x"] for outcome in optimizer.front] == [0.0, 3.0]
    assert optimizer.front[1].values == {"quality": 2.0, "cost": 1.9}


def test_multi_optimizer_batches_are_apart_and_pending_until_told():
    optimizer = play(two(), 3)
    batch = optimizer.ask(3)
    xs = sorted(point["x"] for point in batch)
    assert min(np.diff(xs)) > 1e-3
    assert optimizer.pending == batch
    optimizer.tell(batch[1], values_at(batch[1]))
    assert optimizer.pending == [batch[0], batch[2]]


def test_multi_optimizer_avoids_what_other_workers_have_under_way():
    alone, beside = play(two(seed=2), 4), play(two(seed=2), 4)
    expected = alone.ask()
    beside.expect([expected])
    assert abs(beside.ask()["x"] - expected["x"]) > 1e-3


def test_multi_optimizer_asks_each_candidate_once_and_then_says_so():
    rows = [{"x": float(x)} for x in range(-2, 3)]
    optimizer = play(two(candidates=rows), 5)
    assert sorted(o.x["x"] for o in optimizer.observations) == [-2.0, -1.0, 0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="All 5 candidates have been asked"):
        optimizer.ask()


def test_multi_optimizer_does_not_repeat_a_failure():
    optimizer = play(two(seed=5), 3)
    failed = optimizer.ask()
    optimizer.tell(failed, None)
    assert len(optimizer.observations) == 3
    assert all(abs(p["x"] - failed["x"]) > 1e-3 for p in optimizer.ask(3))


@pytest.mark.parametrize("learned", [True, False], ids=["learned", "from the run alone"])
def test_multi_optimizer_stays_where_the_constraint_holds(learned):
    optimizer = limited(learned)
    for x in (-4.0, 4.0):
        optimizer.tell({"x": x}, limited_values({"x": x}))
    play(optimizer, 7, limited_values)
    (best,) = optimizer.front
    assert 0.8 < best.x["x"] <= 1.0


def test_multi_optimizer_learned_constraint_steers_the_first_query():
    """The constraint is learned from runs; before any observation, it says where to stay."""
    rng = np.random.default_rng(0)
    xs = [rng.uniform(-5.0, 5.0, 20) for _ in range(3)]
    runs = [([{"x": float(x)} for x in own], [x - 1.0 for x in own]) for own in xs]
    tasks = mp.Tasks.from_runs(runs, space=SPACE, direction="minimize")
    slope = mp.learn(tasks, method=mp.methods.RankWeightedGP())
    rising = [([{"x": float(x)} for x in own], [float(x) for x in own]) for own in xs]
    quality = mp.learn(mp.Tasks.from_runs(rising, space=SPACE), method=mp.methods.RankWeightedGP())
    free = mp.MultiOptimizer(mp.Priors({"quality": quality}), search=SEARCH)
    bound = mp.MultiOptimizer(mp.Priors({"quality": quality}, {"excess": slope}), search=SEARCH)
    assert free.ask()["x"] > 3.0
    assert bound.ask()["x"] < 1.5


def test_multi_optimizer_before_anything_feasible_looks_for_it():
    optimizer = limited()
    for x in (2.0, 3.0, 4.0):
        optimizer.tell({"x": x}, limited_values({"x": x}))
    assert optimizer.front == []
    assert optimizer.ask()["x"] < 1.5


def test_multi_optimizer_takes_a_constraint_that_is_not_always_reported():
    optimizer = limited(learned=False)
    optimizer.tell({"x": 0.0}, {"quality": -9.0})
    optimizer.tell({"x": 2.0}, {"quality": -1.0, "excess": 1.0})
    assert [o.values for o in optimizer.observations][0] == {"quality": -9.0}
    assert [o.x for o in optimizer.front] == [{"x": 0.0}]
    assert -5.0 <= optimizer.ask()["x"] <= 5.0


def test_multi_optimizer_fixed_dimensions_stay():
    space = mp.Space(x=mp.Real(0.0, 1.0), kind=mp.Categorical(["a", "b"]))
    priors = mp.Priors({"u": prior(space=space), "v": prior("minimize", space)})
    optimizer = mp.MultiOptimizer(priors, search=SEARCH)
    optimizer.tell({"x": 0.5, "kind": "a"}, {"u": 1.0, "v": 1.0})
    assert [p["kind"] for p in optimizer.ask(3, fixed={"kind": "b"})] == ["b"] * 3


def test_multi_optimizer_reference_keeps_the_search_above_it():
    """Only compromises with a cost of at most 1 are of interest: x between -2 and 0."""
    optimizer = play(two(reference={"quality": -9.0, "cost": 1.0}, seed=1), 10)
    late = [o.x["x"] for o in optimizer.observations[4:]]
    assert np.mean([-2.0 <= x <= 0.05 for x in late]) >= 0.8


@pytest.mark.parametrize("num", [3, 4])
def test_multi_optimizer_takes_more_objectives(num):
    space = mp.Space(x=mp.Real(0.0, 1.0), z=mp.Real(0.0, 1.0))
    tops = np.random.default_rng(0).uniform(size=(num, 2))
    priors = mp.Priors({f"f{i}": prior("minimize", space) for i in range(num)})
    optimizer = mp.MultiOptimizer(priors, search=SEARCH)
    for _ in range(4):
        p = optimizer.ask()
        away = np.sum((tops - [p["x"], p["z"]]) ** 2, axis=1)
        optimizer.tell(p, {f"f{i}": float(v) for i, v in enumerate(away)})
    assert 1 <= len(optimizer.front) <= 4


def test_multi_optimizer_describes_itself():
    text = repr(play(two(), 1))
    assert "maximize quality, minimize cost" in text and "1 observed" in text


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"quality": 1.0}, "no 'cost'"),
        ({"quality": 1.0, "cost": 1.0, "speed": 1.0}, "unknown 'speed'"),
        ({"quality": math.inf, "cost": 1.0}, "finite number"),
    ],
)
def test_multi_optimizer_tell_rejects_wrong_values(values, words):
    with pytest.raises((ValueError, TypeError), match=words):
        two().tell({"x": 0.0}, values)


def test_multi_optimizer_rejects_wrong_arguments():
    with pytest.raises(TypeError, match="Priors"):
        mp.MultiOptimizer(prior())  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="one for each objective"):
        two(reference={"quality": 0.0})
    with pytest.raises(ValueError, match=r"at most 4 .*metaprior\[botorch\].*ManyObjectives"):
        mp.MultiOptimizer(mp.Priors({str(i): prior() for i in range(5)}))


def test_priors_rejects_what_does_not_belong_together():
    other = mp.Space(z=mp.Real(0.0, 1.0))
    with pytest.raises(ValueError, match="no objective"):
        mp.Priors({})
    with pytest.raises(ValueError, match="an objective and a constraint"):
        mp.Priors({"a": prior()}, {"a": None})
    with pytest.raises(ValueError, match="over one space"):
        mp.Priors({"a": prior(), "b": prior(space=other)})
    with pytest.raises(ValueError, match="learn it to minimize"):
        mp.Priors({"a": prior()}, {"c": prior()})
