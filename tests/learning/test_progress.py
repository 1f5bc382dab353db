"""Budgets by name and by seconds; time that runs out; Ctrl-C, once and twice."""

import signal
import threading
import time

import pytest

from metaprior.learning import Budget, Watch, listening
from metaprior.learning import _progress as progress
from metaprior.learning import budget_named as checked_budget_named
from metaprior.learning._budget import BUDGETS

# As users call it: without the runtime checks of these tests, which refuse other types first.
budget_named = getattr(checked_budget_named, "__wrapped__", checked_budget_named)


@pytest.mark.parametrize("name", ["fast", "normal", "thorough"])
def test_budget_named_gives_sensible_budgets(name):
    budget = budget_named(name)
    assert budget.name == name and budget.seconds is None
    assert list(budget.checkpoints) == sorted(set(budget.checkpoints))
    assert set(budget.rungs) < set(budget.checkpoints[:-1])
    assert min(budget.candidates, budget.members, *budget.checkpoints) >= 1 < budget.folds


def work(budget: Budget) -> int:
    return budget.candidates * budget.folds * budget.checkpoints[-1]


def test_budget_of_a_larger_name_is_more_work():
    fast, normal, thorough = (work(budget_named(n)) for n in ("fast", "normal", "thorough"))
    assert fast < normal < thorough
    by_seconds = [work(budget_named(s)) for s in (1, 5.0, 30, 600, 86400)]
    assert by_seconds == sorted(by_seconds) and set(by_seconds) <= {fast, normal, thorough}


def test_budget_named_keeps_and_names_seconds():
    budget = budget_named(90)
    assert budget.seconds == 90.0 and isinstance(budget.seconds, float)
    assert budget.name == "90 seconds" and budget_named(2.5).name == "2.5 seconds"
    assert all(known.seconds is None for known in BUDGETS.values())


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("huge", ValueError, "The budget is 'huge'; give one of fast, normal, thorough"),
        ("60", ValueError, "'60'"),
        (0, ValueError, "The budget is 0 seconds; give a positive number."),
        (-3.0, ValueError, "-3.0 seconds"),
        (float("nan"), ValueError, "nan seconds"),
        (float("inf"), ValueError, "inf seconds"),
        (True, TypeError, "The budget is True"),
        (None, TypeError, "The budget is None"),
        ([60], TypeError, r"The budget is \[60\]"),
    ],
)
def test_budget_named_refuses_bad_input_in_one_sentence(given, error, words):
    with pytest.raises(error, match=words) as caught:
        budget_named(given)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_watch_measures_shares_of_the_time(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    watch = Watch(10.0)
    # A quarter of ten seconds is kept for judging.
    moments = {
        0.0: (False, False, False),
        3.8: (True, False, False),
        7.6: (True, True, False),
        10.1: (True, True, True),
    }
    for elapsed, told in moments.items():
        now[0] = 100.0 + elapsed
        assert watch.elapsed == pytest.approx(elapsed)
        assert (watch.share(0.5), watch.share(1.0), watch.over) == told
    assert not Watch(None).share(0.0) and not Watch(None).over
    watch = Watch(None)
    watch.interrupted = True
    assert watch.share(1.0) and watch.over


def test_watch_keeps_a_bounded_time_for_judging(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    watch = Watch(600.0)
    now[0] = 589.0
    assert not watch.share(1.0)
    now[0] = 591.0
    assert watch.share(1.0) and not watch.over


def press() -> None:
    signal.raise_signal(signal.SIGINT)
    time.sleep(0)  # a chance for the handler


def test_listening_notes_the_first_ctrl_c_and_ends_at_the_second():
    before = signal.getsignal(signal.SIGINT)
    watch = Watch(None)
    with pytest.raises(KeyboardInterrupt):
        with listening(watch):
            assert not watch.interrupted
            press()
            assert watch.interrupted
            press()
            pytest.fail("the second one did not end it")
    assert signal.getsignal(signal.SIGINT) is before


def test_listening_restores_the_callers_handler():
    calls = []
    before = signal.signal(signal.SIGINT, lambda *_: calls.append("theirs"))
    try:
        watch = Watch(None)
        with listening(watch):
            press()
            assert watch.interrupted and calls == []
            press()
            assert calls == ["theirs"]
        press()
        assert calls == ["theirs"] * 2
        with pytest.raises(RuntimeError), listening(Watch(None)):
            raise RuntimeError
        press()
        assert calls == ["theirs"] * 3
    finally:
        signal.signal(signal.SIGINT, before)


def test_listening_in_another_thread_leaves_signals_alone():
    before, seen = signal.getsignal(signal.SIGINT), []

    def inside():
        with listening(Watch(None)):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [before]
