"""`learn` in a tiny race: what it returns, that it is reproducible, and what it survives.

Everything has the lengths and the space of the hills, so that all of it is compiled once.
"""

import json
import signal
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

import metaprior as mp
from metaprior.findings import Findings
from metaprior.learning import Budget, Watch, _budget, _learn, _rounds, _select
from metaprior.learning._candidates import default_lane
from metaprior.learning._measure import CUT_SHORT, UNCONFIRMED
from metaprior.learning._race import Standing
from metaprior.methods import ABLR, Ensemble, FPacohMap, LearnedGP, Weighed

# Every one of these learns, and that is mostly compilation.
pytestmark = pytest.mark.slow

TINY = Budget("tiny", 3, (5, 10), (5,), 2, 1)
CORNERS = [[-1.0, 0.0], [1.0, 10.0], [0.3, 6.0]]


@pytest.fixture(scope="module", autouse=True)
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_budget.BUDGETS, "tiny", TINY)
        yield


@pytest.fixture(scope="module")
def hill_tasks(hill_space, hill_runs):
    return mp.Tasks.from_runs(hill_runs, space=hill_space)


@pytest.fixture(scope="module")
def told():
    """What was reported while `prior` was learned."""
    return []


@pytest.fixture(scope="module")
def prior(hill_tasks, told):
    return mp.learn(hill_tasks, budget="tiny", on_progress=told.append)


def leaves(prior: mp.Prior) -> list[np.ndarray]:
    return jax.tree.leaves(eqx.filter(prior.surrogate, eqx.is_array))


def check(prior: mp.Prior, points, values) -> Findings:
    """The prior predicts, before and after a run, and its findings are whole; they come back."""
    for x, y in (([], []), (points, values)):
        mean, std = prior.condition(x, y).predict(points)
        assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    assert prior.findings is not None
    plain = json.loads(json.dumps(prior.findings.to_json(), allow_nan=False))
    assert Findings.from_json(plain) == prior.findings
    return prior.findings


def test_learn_returns_a_weighed_prior_with_findings_and_history(prior, hill_runs):
    assert isinstance(prior.method, Weighed)
    chosen = prior.method.base
    assert isinstance(chosen, FPacohMap) and chosen.num_steps in TINY.checkpoints
    findings = check(prior, *hill_runs[4])
    assert findings.budget == "tiny" and findings.tried == 3
    assert findings.chosen.steps == chosen.num_steps
    assert findings.chosen.settings["kappa"] == chosen.kappa
    assert findings.chosen.members == 1
    assert findings.interrupted is False and (findings.seconds or 0.0) > 0
    assert [row.points for row in findings.tasks] == [1, 5, 6, 8, 8, 8]
    assert prior.trained_on["tasks"] == 6
    assert set(prior.history) == {"fit", "complexity"}
    for terms in prior.history.values():
        assert terms.shape == (chosen.num_steps,) and np.isfinite(terms).all()
    # The one-point run is shown as it was given.
    assert findings.examples[0].values == tuple(hill_runs[0][1].tolist())


def test_learn_progress_grows_and_names_what_is_tried(prior, told):
    assert all(isinstance(each, mp.LearnProgress) for each in told)
    fractions = [each.fraction for each in told]
    assert fractions == sorted(fractions) and 0 <= fractions[0] and fractions[-1] <= 1
    assert len(fractions) >= len(TINY.checkpoints) + 2
    assert told[0].best is None and told[0].trying == "3 configurations, 5 steps"
    assert told[0].stage == "compiling, and choosing a configuration"
    racing = [each.best for each in told if each.stage == "choosing a configuration"]
    assert len(racing) == 1 and all(np.isfinite(each.best) for each in told[1:])
    assert len({each.stage for each in told}) >= 3


def test_learn_gives_the_same_prior_for_the_same_seed_bit_for_bit(prior, hill_tasks):
    again = mp.learn(hill_tasks, budget="tiny")
    assert again.method == prior.method
    for ours, theirs in zip(leaves(again), leaves(prior), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert again.findings is not None and prior.findings is not None
    assert replace(again.findings, seconds=0.0) == replace(prior.findings, seconds=0.0)
    other = mp.learn(hill_tasks, budget="tiny", seed=1)
    assert other.trained_on["seed"] == 1
    assert other.condition([], []).predict(CORNERS)[0].tolist() != (
        prior.condition([], []).predict(CORNERS)[0].tolist()
    )


def test_load_gives_back_a_chosen_prior_bit_for_bit(prior, hill_runs, tmp_path):
    loaded = mp.load(prior.save(tmp_path / "prior"))
    assert loaded.method == prior.method and prior.findings is not None
    # How long learning took is not saved: the same seed gives the same bytes.
    assert loaded.findings == replace(prior.findings, seconds=None)
    for x, y in (([], []), hill_runs[3], hill_runs[5]):
        ours, theirs = (p.condition(x, y).predict(CORNERS) for p in (prior, loaded))
        np.testing.assert_array_equal(ours, theirs)


def test_learn_minimising_mirrors_maximising(prior, hill_space, hill_runs):
    down = [(points, -values) for points, values in hill_runs]
    tasks = mp.Tasks.from_runs(down, space=hill_space, direction="minimize")
    mirrored = mp.learn(tasks, budget="tiny")
    for run, other in ((([], []), ([], [])), (hill_runs[4], down[4])):
        mean, std = prior.condition(*run).predict(CORNERS)
        other_mean, other_std = mirrored.condition(*other).predict(CORNERS)
        np.testing.assert_allclose(other_mean, -mean, rtol=1e-6)
        np.testing.assert_allclose(other_std, std, rtol=1e-6)
    assert mirrored.findings is not None and prior.findings is not None
    assert mirrored.findings.examples[1].values == tuple((-hill_runs[1][1]).tolist())
    assert mirrored.findings.held_out == prior.findings.held_out


def spoilt(runs, kind: str):
    runs = [(points.copy(), values.copy()) for points, values in runs]
    for index, (points, values) in enumerate(runs):
        if kind == "equal values" or (kind == "one run of equal values" and index == 4):
            values[:] = 0.1
        if kind == "repeated inputs":
            points[1::2] = points[: len(points) - 1 : 2]
        if kind == "one place":
            points[:] = [0.5, 2.0]
        if kind == "one run a million times larger" and index == 3:
            values *= 1e6
    return runs


@pytest.mark.parametrize(
    "kind",
    [
        "equal values",
        "one run of equal values",
        "repeated inputs",
        "one place",
        "one run a million times larger",
    ],
)
def test_learn_survives_awkward_runs(hill_space, hill_runs, kind):
    runs = spoilt(hill_runs, kind)
    prior = mp.learn(mp.Tasks.from_runs(runs, space=hill_space), budget="tiny")
    findings = check(prior, *runs[4])
    equal = "All past values are equal: there is nothing to learn from them."
    assert (equal in findings.notes) == (kind == "equal values")
    if kind == "one run a million times larger":
        predicted = np.array([row.log_likelihood for row in findings.tasks], float)
        assert np.argmin(predicted) == 3


def test_learn_refuses_one_run_and_bad_budgets(hill_tasks):
    with pytest.raises(ValueError, match="needs at least 2 tasks"):
        mp.learn(hill_tasks.subset([0]), budget="tiny")
    with pytest.raises(ValueError, match="The budget is 'huge'"):
        mp.learn(hill_tasks, budget="huge")
    with pytest.raises(ValueError, match="-1.0 seconds"):
        mp.learn(hill_tasks, budget=-1.0)


def test_learn_says_what_to_check_if_every_configuration_diverged(hill_tasks, monkeypatch):
    def lost(methods, *rest, **how):
        found = raced(methods, *rest, **how)
        standings = [Standing(m, 5, np.full(3, -np.inf)) for m in methods]
        return found._replace(standings=standings)

    raced = _rounds.run_race
    monkeypatch.setattr(_rounds, "run_race", lost)
    with pytest.raises(FloatingPointError, match="Every configuration diverged"):
        mp.learn(hill_tasks, budget="tiny")


class PressedAt:
    """A progress callback that presses Ctrl-C at its call of that number."""

    def __init__(self, number: int):
        self.number, self.told = number, []

    def __call__(self, progress: mp.LearnProgress) -> None:
        self.told.append(progress)
        if len(self.told) == self.number:
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_learn_after_ctrl_c_returns_the_best_so_far(hill_tasks, hill_runs, tmp_path, number):
    """Before the first checkpoint, between checkpoints, and while the winner is trained anew."""
    pressed = PressedAt(number)
    prior = mp.learn(hill_tasks, budget="tiny", on_progress=pressed)
    assert len(pressed.told) == number
    findings = check(prior, *hill_runs[4])
    assert findings.interrupted is True
    assert "not judged on held-out runs" in findings.verdict
    # What it says of its training is what it had: nothing, five steps, ten steps.
    base = prior.method.base  # pyright: ignore[reportAttributeAccessIssue]
    assert base.num_steps == [0, 5, 10][number - 1] == findings.chosen.steps
    if number > 1:
        assert prior.history["fit"].shape == (base.num_steps,)
    loaded = mp.load(prior.save(tmp_path / "prior"))
    np.testing.assert_array_equal(
        loaded.condition(*hill_runs[3]).predict(CORNERS),
        prior.condition(*hill_runs[3]).predict(CORNERS),
    )


def test_learn_interrupted_in_a_race_of_small_features_loads(hill_tasks, monkeypatch, tmp_path):
    """The configuration that is saved is the one whose arrays are."""
    small = Budget("small", 3, (5, 10), (5,), 2, 1, (2, 6))
    monkeypatch.setitem(_budget.BUDGETS, "small", small)
    prior = mp.learn(hill_tasks, budget="small", on_progress=PressedAt(1))
    assert prior.findings is not None and prior.findings.chosen.settings["feature_dim"] == 2
    assert mp.load(prior.save(tmp_path / "prior")).method == prior.method


def test_learn_without_time_returns_a_prior_that_says_so(hill_tasks, hill_runs, monkeypatch):
    monkeypatch.setitem(_budget.BUDGETS, "fast", TINY)
    prior = mp.learn(hill_tasks, budget=1e-3)
    findings = check(prior, *hill_runs[4])
    assert findings.budget == "0.001 seconds" and findings.held_out is None
    # The user did not interrupt it: the command ends with success.
    assert findings.interrupted is False
    assert findings.verdict.startswith("The budget was too short: this prior was not judged")


def test_learn_late_in_the_race_judges_its_leader(hill_tasks, hill_runs, monkeypatch, tmp_path):
    """As if the compiler had taken all the time: there is one score, and no more training."""

    class Clock(Watch):
        reads = 0

        @property
        def elapsed(self) -> float:
            self.reads += 1
            return 0.0 if self.reads == 1 else 1.01

    monkeypatch.setitem(_budget.BUDGETS, "fast", TINY)
    monkeypatch.setattr(_learn, "Watch", Clock)
    prior = mp.learn(hill_tasks, budget=1.0)
    findings = check(prior, *hill_runs[4])
    assert findings.chosen.steps == 5 and findings.interrupted is False
    assert findings.held_out is not None and findings.held_out.learned.log_likelihood is not None
    assert findings.replay is None
    assert UNCONFIRMED in findings.notes and CUT_SHORT in findings.notes
    assert "not judged" not in findings.verdict
    loaded = mp.load(prior.save(tmp_path / "prior"))
    assert loaded.findings == replace(findings, seconds=loaded.findings and loaded.findings.seconds)


# Other shapes, each of which is compiled anew.


def wavy_runs(rng: np.random.Generator, lengths: list[int], num_columns: int) -> list:
    runs = []
    for length in lengths:
        points = rng.uniform(size=(length, num_columns))
        runs.append((points, np.sin(6 * points.sum(axis=1) + rng.normal() / 3)))
    return runs


@pytest.mark.parametrize(
    "lengths",
    [[4] * 300, [300, 3, 60], [1, 1, 1], [1, 2]],
    ids=["300 tasks", "300 points", "single points", "1 and 2 points"],
)
def test_learn_takes_many_tasks_long_runs_and_single_points(lengths):
    space = mp.Space(a=mp.Real(0, 1), b=mp.Real(0, 1))
    runs = wavy_runs(np.random.default_rng(0), lengths, 2)
    prior = mp.learn(mp.Tasks.from_runs(runs, space=space), budget="tiny")
    findings = check(prior, *runs[0])
    assert prior.trained_on["observations"] == sum(lengths)
    assert len(findings.tasks) == min(len(lengths), 24)
    if len(lengths) == 2:  # enough, and the reader is warned
        assert findings.notes[0].startswith("There are only 2 past runs")


@pytest.mark.parametrize("together", [True, False])
def test_learn_uses_several_seeds_together_if_that_scores_better(
    hill_tasks, hill_runs, monkeypatch, tmp_path, together
):
    """Whether it does is decided here: of the answers for the mixture, or for each alone."""
    monkeypatch.setitem(_budget.BUDGETS, "pair", Budget("pair", 3, (5, 10), (5,), 2, 2))
    mixtures = []

    def mixed(members):
        assert len(members) == 2
        mixtures.append(mixed_answers(members))
        return mixtures[-1]

    def score_by_run(answers, y_std):
        return np.full(3, float((answers is mixtures[-1]) == together))

    mixed_answers = _select.mixed
    monkeypatch.setattr(_select, "mixed", mixed)
    monkeypatch.setattr(_select, "score_by_run", score_by_run)
    prior = mp.learn(hill_tasks, budget="pair")
    findings = check(prior, *hill_runs[4])
    base = prior.method.base  # pyright: ignore[reportAttributeAccessIssue]
    assert isinstance(base, Ensemble if together else FPacohMap)
    assert findings.chosen.members == (2 if together else 1)
    steps = findings.chosen.steps
    assert prior.history["fit"].shape == ((2, steps) if together else (steps,))
    loaded = mp.load(prior.save(tmp_path / "prior"))
    assert loaded.method == prior.method
    np.testing.assert_array_equal(
        loaded.condition(*hill_runs[3]).predict(CORNERS),
        prior.condition(*hill_runs[3]).predict(CORNERS),
    )


def test_learn_takes_spaces_of_every_kind(tmp_path: Path):
    space = mp.Space(
        lr=mp.Real(1e-4, 1.0, log=True),
        depth=mp.Integer(1, 8),
        kind=mp.Categorical(["a", "b", "c"]),
        share=mp.Real(0.0, 1.0),
    )
    rng = np.random.default_rng(0)
    runs = []
    for length in (3, 7, 7, 5):
        points = space.decode(rng.uniform(size=(length, space.num_columns)))
        values = [p["share"] + 0.1 * p["depth"] + (p["kind"] == "b") for p in points]
        runs.append((points, values))
    tasks = mp.Tasks.from_runs(runs, space=space, direction="minimize")
    prior = mp.learn(tasks, budget="tiny")
    check(prior, *runs[1])
    optimizer = mp.Optimizer(mp.load(prior.save(tmp_path / "prior")), seed=0)
    for _ in range(2):
        point = optimizer.ask()
        assert set(point) == {"lr", "depth", "kind", "share"} and point["kind"] in "abc"
        optimizer.tell(point, 1.0)
        assert optimizer.trust is not None and 0.0 < optimizer.trust < 1.0


@pytest.mark.parametrize("candidates", [[LearnedGP()], [ABLR(), ABLR(learning_rate=0.01)]])
def test_learn_takes_candidates_of_other_methods(hill_tasks, hill_runs, tmp_path, candidates):
    prior = mp.learn(hill_tasks, candidates=candidates, budget="tiny")
    findings = check(prior, *hill_runs[4])
    base = prior.method.base  # pyright: ignore[reportAttributeAccessIssue]
    assert replace(base, num_steps=candidates[0].num_steps) in candidates
    assert findings.tried == len(candidates) and base.num_steps in TINY.checkpoints
    assert prior.history["fit"].shape == (base.num_steps,)
    loaded = mp.load(prior.save(tmp_path / "prior"))
    np.testing.assert_array_equal(
        loaded.condition(*hill_runs[3]).predict(CORNERS),
        prior.condition(*hill_runs[3]).predict(CORNERS),
    )


def test_learn_with_the_default_candidates_given_is_learn_without(prior, hill_tasks):
    """The default set is nothing special: the same prior, bit for bit."""
    given = mp.learn(hill_tasks, candidates=default_lane(3, 6, 6, seed=0), budget="tiny")
    assert given.method == prior.method
    for ours, theirs in zip(leaves(given), leaves(prior), strict=True):
        np.testing.assert_array_equal(ours, theirs)
