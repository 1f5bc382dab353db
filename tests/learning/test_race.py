"""Races whose scores are known: what is scored, what stops, what leads, and when; candidates."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.learning import Budget, Watch
from metaprior.learning import _race as racing
from metaprior.learning._budget import BUDGETS
from metaprior.learning._candidates import (
    default_lane,
    default_lanes,
    lanes_of,
    require_candidates,
)
from metaprior.learning._exam import exam_of, folds_of
from metaprior.learning._race import Race, Standing, has_fallen, run_race, survivors, winner
from metaprior.methods import (
    ABLR,
    AbstractMethod,
    FixedGP,
    FPacohMap,
    LearnedGP,
    PacohMap,
    can_train_together,
)
from tests.learning.answers import tasks_of

ALL = np.ones(5, bool)
SHARE = 0.3


def kept(scores: list[float], going_on: Any = ALL) -> list[int]:
    half = -(-int(np.sum(going_on)) // 2)
    return np.flatnonzero(survivors(np.asarray(scores, float), np.asarray(going_on), half)).tolist()


def test_survivors_are_the_better_half():
    assert kept([1, 5, 3, 2, 4]) == [1, 2, 4]
    assert kept([1, 5, 3, 2, 4], [True, False, True, True, False]) == [2, 3]
    assert kept([1, 5, 3, 2, 4], [True, False, False, False, False]) == [0]
    assert kept([1, 5, 3, 2, 4], ~ALL) == []


def test_survivors_have_not_diverged():
    nothing = -np.inf
    assert kept([nothing, nothing, 3, nothing, nothing]) == [2]
    assert kept([nothing] * 5) == []
    assert kept([nothing, 9, 3, 1, 2], [True, False, True, False, False]) == [2]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.floats(-100, 100), st.booleans()), min_size=1, max_size=20))
def test_survivors_are_at_least_as_good_as_those_that_stop(entries):
    scores, going_on = (np.array(column) for column in zip(*entries, strict=True))
    half = -(-int(going_on.sum()) // 2)
    chosen = survivors(scores, going_on, half)
    assert chosen.sum() == half and not (chosen & ~going_on).any()
    stopped = going_on & ~chosen
    if stopped.any():
        assert scores[stopped].max() <= scores[chosen].min()


METHODS = [FPacohMap(kappa=0.1 * (i + 1)) for i in range(4)]
BUDGET = Budget("made up", 4, (10, 20, 40), (10, 20), 2, 1)
# Score of each method at 10, 20 and 40 steps.
SCORES = {
    10: [4.0, 1.0, 3.0, 2.0],
    20: [5.0, 9.0, 6.0, 9.0],
    40: [9.0, 9.0, 5.5, 9.0],
}


class MadeUpBatch:
    """Trainings that do nothing, and whose scores are looked up."""

    made: list["MadeUpBatch"] = []

    def __init__(self, entries, tasks, folds, *, places, seed, few_steps):
        self.entries, self.places, self.steps = list(entries), places, 0
        self.calls: list[Any] = []
        self.shares: list[float] = []
        MadeUpBatch.made.append(self)

    def train(self, steps, going_on, watch, *, share):
        self.calls.append((steps, np.asarray(going_on).astype(int).tolist()))
        self.shares.append(share)
        if not watch.share(share):
            self.steps = steps

    def surrogates(self):
        return np.arange(len(self.entries))

    @property
    def history(self):
        """The step for the first entry, 1000 more for the next, and so on."""
        return {"fit": 1000 * np.arange(len(self.entries))[:, None] + np.arange(self.steps)}

    def answers(self, exam, asked):
        return self.steps, np.arange(len(self.entries))


def race(monkeypatch, budget=BUDGET, scores=SCORES, watch=None) -> tuple[Race, MadeUpBatch, list]:
    monkeypatch.setattr(racing, "Batch", MadeUpBatch)
    monkeypatch.setattr(racing, "part", lambda answers, rows: (answers[0], answers[1][rows]))
    # Both folds of a method must be scored together, and no other's with them.
    monkeypatch.setattr(racing, "score_by_run", lambda answers, y_std: look_up(answers, scores))
    monkeypatch.setattr(racing, "entry_of", lambda surrogates, index: index)
    tasks = tasks_of(*[[1.0, 2.0, 3.0]] * 4)
    folds = folds_of(4, 2)
    reports: list[tuple[float, str, float | None]] = []
    found = run_race(
        METHODS,
        tasks,
        folds,
        exam_of(tasks, folds),
        budget,
        seed=0,
        watch=watch or Watch(None),
        share=SHARE,
        report=lambda *told: reports.append(told),
    )
    return found, MadeUpBatch.made[-1], reports


def look_up(answers, scores) -> np.ndarray:
    steps, rows = answers
    method = rows[0] // 2
    assert rows.tolist() == [2 * method, 2 * method + 1]
    return scores[steps][method] + np.array([-1.0, 1.0])


def test_run_race_stops_the_worse_half_at_each_rung(monkeypatch):
    found, batch, reports = race(monkeypatch)
    assert batch.calls == [
        (10, [1, 1, 1, 1, 1, 1, 1, 1]),
        # Methods 0 and 2 were better at 10 steps, whatever the others would have become.
        (20, [1, 1, 0, 0, 1, 1, 0, 0]),
        (40, [0, 0, 0, 0, 1, 1, 0, 0]),
    ]
    methods: list[AbstractMethod] = list(METHODS)
    told = [(methods.index(s.method), s.steps, s.score) for s in found.standings]
    assert told == [
        *[(i, 10, SCORES[10][i]) for i in range(4)],
        (0, 20, 5.0),
        (2, 20, 6.0),
        (2, 40, 5.5),
    ]
    # The leader is the one that still trains, as it is now, without fold 0 and without fold 1.
    assert found.leading == replace(METHODS[2], num_steps=40)
    assert found.leaders.tolist() == [4, 5]  # pyright: ignore[reportAttributeAccessIssue]
    assert found.history["fit"].tolist() == list(range(4000, 4040))
    assert [best for _, _, best in reports] == [None, 4.0, 6.0]
    # Ten steps of all, ten of half, twenty of a quarter: 10 + 5 + 5.
    np.testing.assert_allclose([fraction for fraction, _, _ in reports], [0.0, 0.5, 0.75])
    assert [text for _, text, _ in reports] == [
        "4 configurations, 10 steps",
        "2 configurations, 20 steps",
        "1 configuration, 40 steps",
    ]


def test_run_race_without_rungs_trains_all_to_the_end(monkeypatch):
    found, batch, _ = race(monkeypatch, replace(BUDGET, rungs=()))
    assert all(sum(going_on) == 8 for _, going_on in batch.calls)
    assert len(found.standings) == 12


LONG = replace(BUDGET, checkpoints=(10, 20, 40, 80, 160), rungs=(10,))


def test_run_race_stops_a_configuration_that_became_worse_twice_in_a_row(monkeypatch):
    scores = {
        10: np.array([4.0, 1.0, 3.0, 2.0]),
        20: np.array([3.0, 0.0, 5.0, 0.0]),
        40: np.array([2.0, 0.0, 4.0, 0.0]),
        # Method 2 fell once and rose again.
        80: np.array([9.0, 0.0, 4.5, 0.0]),
        160: np.array([9.0, 0.0, 6.0, 0.0]),
    }
    found, batch, _ = race(monkeypatch, LONG, scores)
    both, one = [1, 1, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1, 0, 0]
    assert [going_on for _, going_on in batch.calls] == [[1] * 8, both, both, one, one]
    assert winner(found.standings)[:2] == (METHODS[2], 160)


def test_run_race_ends_if_all_became_worse(monkeypatch):
    scores = {steps: np.full(4, -float(steps)) for steps in LONG.checkpoints}
    found, batch, _ = race(monkeypatch, LONG, scores)
    assert [steps for steps, _ in batch.calls] == [10, 20, 40]
    assert found.leading.num_steps == 40
    assert winner(found.standings).steps == 10


def test_survivors_are_more_than_half_of_those_that_go_on_if_others_made_room():
    scores, going_on = np.array([1.0, 5.0, 3.0, 2.0]), np.array([True, False, True, True])
    assert np.flatnonzero(survivors(scores, going_on, 2)).tolist() == [2, 3]


def test_has_fallen_takes_two_falls_in_a_row():
    scores = np.array([[1.0, 3.0, 3.0, 3.0], [2.0, 2.0, 2.0, 3.0], [3.0, 1.0, 2.5, 2.0]])
    assert has_fallen(list(scores)).tolist() == [False, True, False, False]
    assert not has_fallen(list(scores[:2])).any()


def test_run_race_has_room_for_the_members_of_the_winner(monkeypatch):
    """A member for each fold and one that sees everything, five times."""
    assert race(monkeypatch, replace(BUDGET, members=5))[0].places == 5 * 3
    assert race(monkeypatch)[0].places == 4 * 2


def test_run_race_ends_if_all_diverge(monkeypatch):
    scores = {10: [1.0, 2.0, 3.0, 4.0], 20: [-np.inf] * 4, 40: [0.0] * 4}
    found, batch, _ = race(monkeypatch, scores=scores)
    assert [steps for steps, _ in batch.calls] == [10, 20]
    assert len(found.standings) == 6


class Interrupted(Watch):
    """The user presses Ctrl-C while the batch trains for the `after`-th time."""

    def __init__(self, after: int):
        super().__init__(None)
        self.left, self.asked = after, 0

    def share(self, fraction: float) -> bool:
        # Asked once in each training, and once after each but the first without a score.
        self.left -= self.asked % 2 == 0
        self.asked += 1
        self.interrupted = self.left <= 0
        return self.interrupted


@pytest.mark.parametrize(("after", "scored", "leading"), [(1, 0, 0), (2, 4, 0), (3, 6, 2)])
def test_run_race_interrupted_has_the_leader_of_what_was_scored(
    monkeypatch, after, scored, leading
):
    found, batch, _ = race(monkeypatch, watch=Interrupted(after))
    assert len(batch.calls) == after and len(found.standings) == scored
    assert found.leading == replace(METHODS[leading], num_steps=batch.steps)


def test_run_race_against_the_clock_ends_after_its_share(monkeypatch):
    class Late(Watch):
        def share(self, fraction: float) -> bool:
            return fraction == SHARE

    found, batch, _ = race(monkeypatch, watch=Late(1e9))
    assert len(batch.calls) == 1 and len(found.standings) == 4


def test_run_race_trains_on_for_a_first_score_and_then_within_its_share(monkeypatch):
    _, batch, _ = race(monkeypatch)
    assert batch.shares == [1.0, SHARE, SHARE]


def standing(steps: int, *by_run: float) -> Standing:
    return Standing(FPacohMap(num_steps=steps), steps, np.array(by_run))


def test_winner_is_the_best_score_and_among_equals_the_shortest_training():
    """Better by the same amount in every run: no luck about it."""
    best = standing(100, 1.0, 2.0, 3.0)
    shorter, longer = (standing(steps, 0.5, 1.5, 2.5) for steps in (50, 400))
    assert winner([shorter, best, longer]) is best
    equal = standing(20, 1.0, 2.0, 3.0)
    assert winner([best, equal]) is winner([equal, best]) is equal


def test_winner_has_diverged_only_if_all_have():
    lost = standing(400, -np.inf, -np.inf)
    assert winner([lost, standing(10, -50.0, -60.0)]).steps == 10
    assert winner([lost, lost]).score == -np.inf


@pytest.mark.parametrize("num", [1, 3, 6, 40])
def test_default_lane_has_one_shape_and_begins_alike(num):
    found = default_lane(num, 20, 6, seed=0)
    assert len(found) == num == len(set(found))
    sizes = ("feature_dim", "batch_size", "num_measurements", "measurements_from_task")
    assert len({tuple(getattr(method, name) for name in sizes) for method in found}) == 1
    assert found == default_lane(50, 20, 6, seed=0)[:num]
    assert found[0] == default_lane(num, 20, 6, seed=1)[0]
    assert all(type(method.kappa) is float and type(method.offset) is bool for method in found)


def test_default_lane_depends_on_the_seed_and_stays_closer_for_few_tasks():
    ours, theirs = default_lane(40, 20, 6, seed=0), default_lane(40, 20, 6, seed=1)
    assert ours[10:] != theirs[10:]
    few = default_lane(40, 2, 6, seed=0)
    assert np.mean([m.kappa for m in few[10:]]) > 2 * np.mean([m.kappa for m in ours[10:]])


def test_default_lanes_race_other_methods_in_the_largest_budget_only():
    for name, others in {"fast": [], "normal": [], "thorough": [PacohMap, LearnedGP, ABLR]}.items():
        lanes = default_lanes(BUDGETS[name], 20, seed=0)
        # What trains in one batch is in one lane, and nothing is there twice.
        assert lanes_of([method for lane in lanes for method in lane]) == lanes
        assert len({method for lane in lanes for method in lane}) == sum(map(len, lanes))
        own = len(BUDGETS[name].feature_dims)
        assert {type(method) for lane in lanes[:own] for method in lane} == {FPacohMap}
        assert [type(lane[0]) for lane in lanes[own:]] == others


def test_lanes_of_groups_by_class_and_sizes_whatever_the_numbers():
    small = FPacohMap(feature_dim=2)
    first, second = FPacohMap(kappa=0.1), FPacohMap(kappa=0.2, num_steps=7, warp=True)
    other = ABLR()
    assert lanes_of([first, small, other, second]) == [[first, second], [small], [other]]
    assert lanes_of([first, first]) == [[first, first]]


def test_can_train_together_needs_one_class_and_equal_sizes():
    assert can_train_together(LearnedGP(), LearnedGP(learning_rate=1.0, num_steps=3))
    assert not can_train_together(LearnedGP(), LearnedGP(batch_size=3))
    assert not can_train_together(LearnedGP(), ABLR())


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ([], ValueError, "`candidates` is empty; give at least one method"),
        (FPacohMap(), TypeError, r"`candidates` is FPacohMap\(.*; give a list of methods"),
        ("FPacohMap", TypeError, "`candidates` is 'FPacohMap'; give a list of methods"),
        (3, TypeError, "`candidates` is 3; give a list of methods"),
        ([FPacohMap(), "ABLR"], TypeError, r"candidates\[1\] is 'ABLR'; give methods"),
        ([FPacohMap], TypeError, r"candidates\[0\] is <class .*; give methods"),
        (
            [FPacohMap(), FixedGP()],
            TypeError,
            r"candidates\[1\] is FixedGP\(\), which is not trained by gradients",
        ),
    ],
)
def test_require_candidates_refuses_bad_input_in_one_sentence(given, error, words):
    with pytest.raises(error, match=words) as caught:
        require_candidates(given)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_require_candidates_takes_any_sequence_of_gradient_methods():
    for methods in ([FPacohMap()], (LearnedGP(), ABLR())):
        assert require_candidates(methods) is None
