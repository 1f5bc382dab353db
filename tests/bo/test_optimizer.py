"""Ask and tell: what people rely on, whatever the model underneath."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import metaprior as mp
from metaprior.bo import (
    LogExpectedImprovement,
    RestlessConfidenceBound,
    Search,
    ThompsonSampling,
    UpperConfidenceBound,
)
from metaprior.bo._propose import RunSoFar
from metaprior.methods import (
    AbstractMethod,
    AbstractSurrogate,
    FixedGP,
    Guarded,
    Moments,
    SelfStandardisedGP,
    TrainedContents,
)
from tests.moments_only import MomentsOnly

SEARCH = Search(num_global=128, num_local=32, num_starts=4, num_steps=6)
SPACE = mp.Space(x=mp.Real(-5.0, 5.0))


def value_at(point):
    return float(3.0 - (point["x"] - 1.2) ** 2)


@pytest.fixture(scope="module")
def line_tasks():
    rng = np.random.default_rng(0)
    points = [[{"x": float(x)} for x in rng.uniform(-5, 5, 6)] for _ in range(3)]
    return mp.Tasks.from_runs([(p, [value_at(q) for q in p]) for p in points], space=SPACE)


@pytest.fixture(scope="module")
def prior(line_tasks):
    return mp.learn(line_tasks, method=FixedGP(lengthscale=0.5))


def play(optimizer, num_queries):
    """The optimiser's queries when each is answered before the next."""
    points = []
    for _ in range(num_queries):
        points.append(optimizer.ask())
        optimizer.tell(points[-1], value_at(points[-1]))
    return points


class SteepPosterior(MomentsOnly):
    """Sure that more of everything is better, whatever was observed."""

    def moments(self, x):
        return Moments(100.0 * jnp.sum(x), jnp.asarray(0.01), jnp.asarray(0.01))


class SteepSurrogate(AbstractSurrogate):
    """Counts how often Python runs through it: once for each compilation."""

    traces = []

    def condition(self, run):
        self.traces.append(run.y.shape[0])
        return SteepPosterior()


class Steep(AbstractMethod):
    """A method that has no form in NumPy."""

    def meta_train(self, tasks, *, key, on_progress=None):
        return SteepSurrogate()

    def blank_surrogate(self, num_columns):
        return SteepSurrogate()


def steep(space, **options):
    """An optimiser whose acquisition is always largest in the same corner."""
    prior = mp.Prior(space, "maximize", TrainedContents(Steep(), SteepSurrogate()))
    return mp.Optimizer(prior, search=SEARCH, **options)


def test_optimizer_starts_without_data_and_finds_the_top(prior):
    optimizer = mp.Optimizer(prior, search=SEARCH, seed=0)
    assert optimizer.best is None and optimizer.observations == [] and optimizer.pending == []
    points = play(optimizer, 12)
    assert all(-5 <= point["x"] <= 5 for point in points)
    best = optimizer.best
    assert best is not None and best.value == max(map(value_at, points))
    assert best.value > 3.0 - 1e-2
    assert best.value == pytest.approx(value_at(best.x))
    told = optimizer.observations
    np.testing.assert_allclose([x["x"] for x, _ in told], [p["x"] for p in points], rtol=1e-12)
    assert [value for _, value in told] == [value_at(p) for p in points]


def test_optimizer_of_the_same_seed_asks_the_same_queries(prior):
    first, second = (play(mp.Optimizer(prior, search=SEARCH, seed=0), 4) for _ in range(2))
    assert first == second
    rows = np.linspace(-5, 5, 41)[:, None]
    drawn, again, other = (
        play(mp.Optimizer(prior, candidates=rows, acquisition=ThompsonSampling(), seed=seed), 5)
        for seed in (0, 0, 1)
    )
    assert drawn == again
    assert drawn != other


def test_optimizer_spreads_a_batch_out(prior):
    """Queries under way count as answered: the next ones go elsewhere."""
    optimizer = mp.Optimizer(prior, search=SEARCH, seed=0)
    optimizer.tell({"x": -4.0}, value_at({"x": -4.0}))
    batch = optimizer.ask(3)
    assert optimizer.pending == batch
    x = sorted(point["x"] for point in batch)
    assert min(np.diff(x)) > 0.05
    optimizer.tell(batch[1], 0.5)
    assert optimizer.pending == [batch[0], batch[2]]


def test_optimizer_respects_pending_queries_until_they_are_told(prior):
    alone, busy = (mp.Optimizer(prior, search=SEARCH, seed=0) for _ in range(2))
    first = busy.ask()
    assert alone.ask() == first
    alone.tell(first, 2.0)
    assert alone.ask() != busy.ask()  # knowing the answer is not the same as waiting for it


@pytest.mark.parametrize("failure", [None, float("nan"), np.float64("nan")])
def test_optimizer_does_not_ask_failures_again(prior, failure):
    optimizer = mp.Optimizer(prior, search=SEARCH, seed=0)
    failed = optimizer.ask()
    optimizer.tell(failed, failure)
    assert optimizer.best is None and optimizer.observations == [] and optimizer.pending == []
    optimizer.tell({"x": -4.9}, -1.0)
    for _ in range(4):
        point = optimizer.ask()
        assert abs(point["x"] - failed["x"]) > 1e-3
        optimizer.tell(point, value_at(point))
    assert len(optimizer.observations) == 5


def test_optimizer_asks_nothing_twice_even_where_the_model_insists():
    """The acquisition is largest at x = 5 however often it is asked, told or not."""
    optimizer = steep(SPACE)
    first = optimizer.ask()
    assert first == {"x": 5.0}
    optimizer.tell(first, None)
    others = optimizer.ask(3)
    asked = [first, *others]
    assert len({point["x"] for point in asked}) == 4
    assert min(point["x"] for point in asked) > 4.0  # still where the model hopes for most


def test_optimizer_uses_a_small_discrete_space_up_before_it_repeats():
    space = mp.Space(k=mp.Integer(1, 3), c=mp.Categorical(["a", "b"]))
    optimizer = steep(space)
    batch = optimizer.ask(6)
    assert len({tuple(point.values()) for point in batch}) == 6
    # Nothing is left that is neither under way nor failed: asking again is all one can do.
    assert optimizer.ask() in batch


def test_optimizer_counts_points_that_were_not_asked(prior):
    optimizer = mp.Optimizer(prior, search=SEARCH, seed=0)
    optimizer.tell({"x": 1.2}, 3.0)
    optimizer.tell({"x": -2.0}, value_at({"x": -2.0}))
    assert optimizer.best is not None
    assert optimizer.best.x["x"] == pytest.approx(1.2) and optimizer.best.value == 3.0
    assert optimizer.pending == []
    optimizer.tell({"x": 1.2}, 2.9)  # a second look at the same point
    assert [value for _, value in optimizer.observations] == [3.0, value_at({"x": -2.0}), 2.9]
    assert -5 <= optimizer.ask()["x"] <= 5


def test_optimizer_asks_each_candidate_once_and_nothing_else(prior):
    rows = [{"x": x} for x in (-3.0, 0.5, 1.0, 4.0, 1.0)]  # one of them twice
    optimizer = mp.Optimizer(prior, candidates=rows, seed=0)
    asked = [optimizer.ask()]
    optimizer.tell(asked[0], None)
    optimizer.tell({"x": 0.5}, 2.0)  # told unasked: used up too
    asked += optimizer.ask(2)
    used = sorted(point["x"] for point in asked + [{"x": 0.5}])
    assert used == pytest.approx([-3.0, 0.5, 1.0, 4.0])
    with pytest.raises(ValueError, match=r"^All 5 candidates have been asked; [^.]*\.$"):
        optimizer.ask()


def test_optimizer_ranks_candidates_by_the_acquisition(prior):
    x = np.linspace(-5, 5, 41)
    mean, std = prior.condition([[0.0], [3.0]], [1.56, -0.24]).predict(x[:, None])
    _, function_std = prior.condition([[0.0], [3.0]], [1.56, -0.24]).predict(
        x[:, None], noiseless=True
    )
    u = (mean - 1.56) / function_std
    improvement = function_std * (scipy.stats.norm.pdf(u) + u * scipy.stats.norm.cdf(u))
    for acquisition, scores in (
        (UpperConfidenceBound(0.5), mean + 0.5 * std),
        (LogExpectedImprovement(), improvement),
    ):
        optimizer = mp.Optimizer(prior, candidates=x[:, None], acquisition=acquisition)
        optimizer.tell({"x": 0.0}, 1.56)
        optimizer.tell({"x": 3.0}, -0.24)
        scores[[20, 32]] = -np.inf  # told already
        assert optimizer.ask()["x"] == pytest.approx(x[np.argmax(scores)])


def test_optimizer_minimises(hill_space, hill_runs, quick_fpacoh, hill_prior):
    """A prior learned from valleys: suggestions go low at once, and the best is the smallest."""
    valleys = mp.Tasks.from_runs(
        [(points, -values) for points, values in hill_runs],
        space=hill_space,
        direction="minimize",
    )
    prior = mp.learn(valleys, method=quick_fpacoh, seed=0)
    optimizer = mp.Optimizer(prior, search=SEARCH, seed=0)

    def valley(point):
        return ((point["x"] - 0.3) / 0.8) ** 2 + ((point["z"] - 6.0) / 4.0) ** 2 - 2.0

    values = []
    for _ in range(6):
        point = optimizer.ask()
        values.append(valley(point))
        optimizer.tell(point, values[-1])
    rng = np.random.default_rng(0)
    random = [valley({"x": rng.uniform(-1, 1), "z": rng.uniform(0, 10)}) for _ in range(1000)]
    assert optimizer.best is not None and optimizer.best.value == min(values)
    assert min(values) < np.quantile(random, 0.02)
    assert np.mean(values) < np.mean(random)
    # The mirror image of maximising the hills, question by question.
    mirror = mp.Optimizer(hill_prior, search=SEARCH, seed=0)
    assert mirror.ask() == optimizer.observations[0][0]


def test_optimizer_compiles_again_only_when_the_buffer_of_a_run_doubles():
    """For a method without a NumPy form; in a space of a width that no other test has."""
    space = mp.Space(**{f"x{i}": mp.Real(0.0, 1.0) for i in range(9)})
    SteepSurrogate.traces.clear()
    for _ in range(2):  # the second run finds everything compiled
        optimizer = steep(space)
        for step in range(40):
            optimizer.tell(optimizer.ask(), float(step))
        assert SteepSurrogate.traces == [16, 32, 64]


def one_sentence(error, *words):
    text = str(error.value)
    assert all(word in text for word in words), text
    assert text.endswith(".") and "\n" not in text, text


def test_optimizer_names_bad_input_in_one_sentence(prior):
    optimizer = mp.Optimizer(prior, search=SEARCH)
    for n in (0, -2):
        with pytest.raises(ValueError) as error:
            optimizer.ask(n)
        one_sentence(error, str(n), "at least 1")
    with pytest.raises(ValueError) as error:
        optimizer.tell({"x": 0.0}, float("inf"))
    one_sentence(error, "inf", "None for a failure")
    with pytest.raises(ValueError) as error:
        optimizer.tell({"x": 7.0}, 1.0)
    one_sentence(error, "'x'", "7.0", "[-5.0, 5.0]")
    with pytest.raises(ValueError) as error:
        optimizer.tell({"y": 0.0}, 1.0)
    one_sentence(error, "'x'", "'y'")
    with pytest.raises(ValueError) as error:
        mp.Optimizer(prior, candidates=[])
    one_sentence(error, "candidates", "at least one")
    with pytest.raises(ValueError) as error:
        mp.Optimizer(prior, candidates=[{"x": 0.0}, {"x": 9.0}])
    one_sentence(error, "candidates", "row 1", "9.0")
    assert optimizer.observations == [] and optimizer.pending == []


@pytest.mark.parametrize("form", ["dicts", "array"])
def test_optimizer_returns_candidates_exactly_as_they_were_given(hill_prior, form):
    rows = [{"x": 0.1 * i - 0.7, "z": 1.2 + 0.3 * i} for i in range(6)]
    given = rows if form == "dicts" else np.array([[row["x"], row["z"]] for row in rows])
    opt = mp.Optimizer(hill_prior, candidates=given, seed=0)
    table = {(row["x"], row["z"]): float(i) for i, row in enumerate(rows)}
    asked = opt.ask(2)
    assert opt.pending == asked
    for point in asked:
        opt.tell(point, table[point["x"], point["z"]])
    assert opt.best is not None
    assert table[opt.best.x["x"], opt.best.x["z"]] == opt.best.value
    assert [point for point, _ in opt.observations] == asked


def test_optimizer_of_a_prior_without_a_guard_has_no_trust(prior):
    optimizer = mp.Optimizer(prior, search=SEARCH)
    play(optimizer, 1)
    assert optimizer.trust is None


@pytest.fixture(scope="module")
def guarded(line_tasks):
    return mp.learn(line_tasks, method=Guarded(FixedGP(lengthscale=0.5)))


def trust_of(optimizer) -> float:
    assert isinstance(optimizer.trust, float)
    return optimizer.trust


def test_optimizer_trust_follows_what_is_told(guarded):
    """Values far outside what past runs were like, at points that say so again and again."""
    optimizer = mp.Optimizer(guarded, search=SEARCH)
    trust = [trust_of(optimizer)]
    for x in (-4.5, 4.0, -1.0, 2.0):
        optimizer.tell({"x": x}, 1e4 * np.sin(3.0 * x))
        trust.append(trust_of(optimizer))
    np.testing.assert_allclose(trust[0], 0.95)
    assert trust[1] < 0.75 and max(trust[3:]) < 0.25, trust
    assert -5.0 <= optimizer.ask()["x"] <= 5.0


def test_optimizer_trust_ignores_failures_and_pending_queries(guarded):
    optimizer = mp.Optimizer(guarded, search=SEARCH)
    play(optimizer, 3)
    before = trust_of(optimizer)
    assert before >= 0.75
    for _ in range(3):
        optimizer.tell(optimizer.ask(), None)
    optimizer.ask(2)
    assert optimizer.trust == before
    assert optimizer._settled_belief() is optimizer.prior.belief.unguarded


def test_optimizer_respects_queries_of_others(hill_prior):
    alone = mp.Optimizer(hill_prior, search=SEARCH, seed=0).ask(2)
    opt = mp.Optimizer(hill_prior, search=SEARCH, seed=0)
    opt.expect([alone[0]])
    assert opt.pending == [pytest.approx(alone[0])]
    x = opt.ask()
    assert max(abs(x["x"] - alone[0]["x"]), abs(x["z"] - alone[0]["z"]) / 10) > 1e-3
    opt.tell(alone[0], 1.0)
    assert opt.pending == [pytest.approx(x)]


def test_optimizer_fork_knows_the_same_and_keeps_what_it_hears_to_itself(hill_prior):
    opt = mp.Optimizer(hill_prior, search=SEARCH, seed=0)
    opt.tell({"x": 0.0, "z": 5.0}, 1.0)
    fork = opt.fork(seed=0)
    assert fork.ask() == first_question(opt)
    fork.tell({"x": 0.5, "z": 5.0}, 2.0)
    assert opt.best is not None and opt.best.value == 1.0 and opt.pending == []
    assert fork.best is not None and fork.best.value == 2.0


def first_question(opt):
    """What an optimiser that was told the same would ask."""
    other = mp.Optimizer(opt.prior, search=SEARCH, seed=0)
    for x, value in opt.observations:
        other.tell(x, value)
    return other.ask()


def rough(point):
    """A hill with ripples that a model of its shape takes for noise; the same every time."""
    x, z = point["x"], point["z"]
    return -4.0 * ((x - 0.5) ** 2 + (z - 0.5) ** 2) + 0.2 * np.sin(40.0 * np.sin(31 * x + 17 * z))


@pytest.mark.parametrize("reach, repeats", [(0.1, False), (1e-9, True)])
def test_optimizer_does_not_repeat_a_query_of_a_rough_function(reach, repeats):
    """Without the reach, the bound ends with one question again and again."""
    space = mp.Space(x=mp.Real(0.0, 1.0), z=mp.Real(0.0, 1.0))
    method = SelfStandardisedGP(noise_variance=0.3, lengthscale=0.3)
    prior = mp.Prior(space, "maximize", TrainedContents(method, method.blank_surrogate(2)))
    optimizer = mp.Optimizer(prior, seed=0, acquisition=RestlessConfidenceBound(reach=reach))
    asked = np.empty((0, 2))
    nearest = []
    for _ in range(24):
        point = optimizer.ask()
        optimizer.tell(point, rough(point))
        here = np.array([[point["x"], point["z"]]])
        nearest.append(np.min(np.linalg.norm(asked - here, axis=1), initial=np.inf))
        asked = np.concatenate([asked, here])
    assert (min(nearest) < 0.01) == repeats


class TestFixed:
    SPACE = mp.Space(x=mp.Real(0.0, 1.0), n=mp.Integer(0, 4), kind=mp.Categorical(["a", "b"]))

    @staticmethod
    def value_at(point):
        """The best x depends on what is fixed: 0.2 + 0.15 n, and 0.1 less for b."""
        best = 0.2 + 0.15 * point["n"] - 0.1 * (point["kind"] == "b")
        return -((point["x"] - best) ** 2)

    def optimizer(self, **options):
        method = SelfStandardisedGP(lengthscale=0.5, noise_variance=1e-6)
        prior = mp.Prior(self.SPACE, "maximize", TrainedContents(method, method.blank_surrogate(4)))
        return mp.Optimizer(prior, seed=0, search=SEARCH, **options)

    def test_ask_with_fixed_values_finds_the_best_of_the_others(self):
        optimizer, fixed = self.optimizer(), {"n": 3, "kind": "b"}
        for point in self.SPACE.decode(np.random.default_rng(0).uniform(size=(12, 4))):
            optimizer.tell(point, self.value_at(point))
        for _ in range(8):
            point = optimizer.ask(fixed=fixed)
            assert {name: point[name] for name in fixed} == fixed
            optimizer.tell(point, self.value_at(point))
        assert point["x"] == pytest.approx(0.55, abs=0.05)
        assert 0 <= optimizer.ask()["n"] <= 4  # and it is free again

    def test_ask_with_fixed_values_differs_side_by_side_and_after_a_failure(self):
        optimizer, fixed = self.optimizer(), {"x": 0.5, "kind": "a"}
        points = optimizer.ask(3, fixed=fixed)
        optimizer.tell(points[0], None)
        points.append(optimizer.ask(fixed=fixed))
        assert {point["x"] for point in points} == {0.5}
        assert len({point["n"] for point in points}) == 4

    def test_ask_with_fixed_values_takes_candidates_that_have_them(self):
        candidates = self.SPACE.decode(np.random.default_rng(1).uniform(size=(20, 4)))
        optimizer = self.optimizer(candidates=candidates)
        several = sum(point["kind"] == "b" for point in candidates)
        for _ in range(several):
            assert optimizer.ask(fixed={"kind": "b"})["kind"] == "b"
        with pytest.raises(ValueError, match="No candidate that is left has the values in `fixed`"):
            optimizer.ask(fixed={"kind": "b"})

    @pytest.mark.parametrize(
        "fixed, sentence",
        [
            ({"y": 1.0}, r"`fixed` has 'y', which is none of the dimensions \['x', 'n', 'kind'\]"),
            ({"x": 2.0}, "fixed.*dimension 'x'.*2.0"),
        ],
    )
    def test_ask_with_fixed_values_answers_bad_input_in_one_sentence(self, fixed, sentence):
        with pytest.raises(ValueError, match=sentence):
            self.optimizer().ask(fixed=fixed)


class TestStopped:
    """Queries that were stopped early, for a prior that is to be maximised and one that is not."""

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_tell_counts_a_stopped_query_as_no_better_than_its_value(self, sign):
        """The model hopes for more than that, or expects less anyway."""
        for limit, expected in [(0.5, 0.5), (50.0, 10.0), (None, 10.0)]:
            believed = self.believed(sign, limit)
            assert sign * believed == pytest.approx(expected, abs=0.05)

    @staticmethod
    def believed(sign, limit):
        """What a query at 0 counts as, stopped after 10 was observed right beside it."""
        direction = "maximize" if sign > 0 else "minimize"
        method = SelfStandardisedGP(lengthscale=0.5, noise_variance=1e-6)
        contents = TrainedContents(method, method.blank_surrogate(1))
        optimizer = mp.Optimizer(mp.Prior(SPACE, direction, contents), search=SEARCH)
        for x, value in [(-0.002, 10.0), (0.002, 10.0), (4.0, 0.0), (-4.0, -1.0)]:
            optimizer.tell({"x": x}, sign * value)
        assert optimizer.best is not None
        optimizer.tell({"x": 0.0}, None if limit is None else sign * limit, stopped=True)
        run = RunSoFar(
            optimizer._x, optimizer._y, optimizer._pending, optimizer._lost, optimizer._limit
        )
        ghosts = run.believed(optimizer._belief).y[-1:]
        return sign * float(ghosts[0])

    def test_ask_avoids_stopped_queries(self):
        """The acquisition is largest at x = 5, however often the query there is stopped."""
        optimizer = steep(SPACE)
        for _ in range(5):
            stopped = [optimizer.ask()]
            optimizer.tell(stopped[-1], 1.0, stopped=True)
            assert abs(optimizer.ask()["x"] - stopped[-1]["x"]) > 1e-2  # 0.001 of the space
        assert optimizer.best is None and optimizer.observations == []
        assert "5 stopped early" in repr(optimizer)


def test_ask_repeats_an_evaluated_query_only_if_its_values_differ():
    """The acquisition is largest at x = 5."""
    optimizer = steep(SPACE)
    optimizer.tell({"x": 5.0}, 1.0)
    assert optimizer.ask() != {"x": 5.0}
    noisy = steep(SPACE)
    for value in (1.0, 1.5):
        noisy.tell({"x": 5.0}, value)
    assert noisy.ask() == {"x": 5.0}


def test_ask_in_a_used_up_space_repeats_evaluated_queries_not_failures():
    """One of six points is left, where the model hopes for least, and then none."""
    space = mp.Space(k=mp.Integer(1, 3), c=mp.Categorical(["a", "b"]))
    optimizer = steep(space)
    points = [{"k": k, "c": c} for k in (1, 2, 3) for c in "ab"]
    for point in points[1:]:
        optimizer.tell(point, None if point["k"] == 3 else 1.0)
    assert optimizer.ask() == points[0]
    optimizer.tell(points[0], 1.0)
    assert optimizer.ask()["k"] == 2
