"""`learn`: from past runs to a prior, in one call."""

from collections.abc import Sequence
from typing import Any, overload

import jax
import numpy as np

from metaprior.belief import Prior
from metaprior.data import TaskFeatures, Tasks
from metaprior.findings import Findings
from metaprior.gp import float64
from metaprior.learning._asked import asked_contents
from metaprior.learning._budget import Budget, budget_named
from metaprior.learning._cache import keep_programs
from metaprior.learning._candidates import default_lanes, lanes_of, require_candidates
from metaprior.learning._measure import findings_of
from metaprior.learning._progress import LearnProgress, OnLearnProgress, Watch, listening
from metaprior.learning._screen import screened
from metaprior.learning._select import select
from metaprior.meta import Progress
from metaprior.methods import (
    AbstractGradientMethod,
    AbstractMethod,
    TrainedContents,
)

# Why features of tasks are not used.
UNSEEN = "the method does not see features of tasks"


@overload
def learn(
    tasks: Tasks,
    *,
    candidates: Sequence[AbstractGradientMethod] | None = None,
    budget: str | float = "normal",
    seed: int = 0,
    private: bool = False,
    on_progress: OnLearnProgress | None = None,
) -> Prior: ...
@overload
def learn(
    tasks: Tasks,
    *,
    method: AbstractMethod | None,
    seed: int = 0,
    private: bool = False,
    on_progress: OnLearnProgress | None = None,
) -> Prior: ...
@float64
def learn(
    tasks: Tasks,
    *,
    method: AbstractMethod | None = None,
    candidates: Sequence[AbstractGradientMethod] | None = None,
    budget: str | float = "normal",
    seed: int = 0,
    private: bool = False,
    on_progress: OnLearnProgress | None = None,
) -> Prior:
    """A prior over functions, learned from past runs.

    By default, configurations race on held-out runs, and the best is trained on all runs. It joins
    single past runs and a non-transfer GP in one belief, weighted by the evidence of each new run
    (`methods.Weighed`); `prior.findings` has what was measured. Ctrl-C ends the
    race with the best prior so far. Features of the tasks join the race one by one, and stay if
    they help by more than noise.

    - `tasks`: at least two runs over one space: `Tasks.from_runs(...)`.
    - `method`: learn by exactly this method instead; nothing is chosen, held out or added.
    - `candidates`: the configurations that race, of any gradient-trained methods; by default
      variants of `FPacohMap`. How long to train is part of the choice, so their `num_steps` is
      ignored. Configurations of one class and of equal sizes train together; every other class or
      size takes about as long again.
    - `budget`: how much to try: `"fast"`, `"normal"`, `"thorough"`, or a number of seconds.
    - `seed`: the same seed on the same machine gives the same prior, bit for bit, unless the budget
      is in seconds.
    - `private`: keep no points of past runs, neither as examples nor as members of the belief. What
      was learned from them stays (see the files of a prior in the documentation).
    - `on_progress`: called now and then with a `metaprior.LearnProgress`.

    `prior.history` has the terms of the objective in the training that made the prior, one value
    per step; for an ensemble, one row per member.
    """
    if not isinstance(tasks, Tasks):
        raise TypeError(
            f"`tasks` is a {type(tasks).__name__}; make one with "
            "`Tasks.from_runs(runs, space=...)`."
        )
    tasks.require_several()
    if method is not None and candidates is not None:
        raise ValueError(
            "Both `method` and `candidates` are given; give `method` to learn by exactly that one, "
            "or `candidates` to choose among several."
        )
    keep_programs()
    if method is not None and private and method.keeps_points:
        raise ValueError(
            f"{type(method).__name__} keeps points of past runs, and `private` forbids that; give "
            "another method, such as Guarded(FPacohMap())."
        )
    if method is not None:
        return _learn_by(method, tasks, seed, on_progress)
    if candidates is not None:
        require_candidates(candidates)
    return _learn_by_choice(tasks, candidates, budget_named(budget), seed, private, on_progress)


def _learn_by(
    method: AbstractMethod, tasks: Tasks, seed: int, on_progress: OnLearnProgress | None
) -> Prior:
    reports: list[Progress] = []

    def report(stage: str, fraction: float) -> None:
        if on_progress is not None:
            on_progress(LearnProgress(stage, fraction, method.summary(), None))

    def record(progress: Progress) -> None:
        reports.append(progress)
        report("training", progress.step / progress.num_steps)

    # The first steps wait for the compiler.
    report("compiling, and training" if method.takes_steps else "training", 0.0)
    features = tasks.features
    if not method.sees_features:
        features = features.without({f.name: UNSEEN for f in features.used})
    seen = tasks.with_feature_columns(features) if features.used else tasks
    surrogate = method.meta_train(seen, key=jax.random.key(seed), on_progress=record)
    names = reports[0].terms if reports else {}
    history = {name: np.concatenate([r.terms[name] for r in reports], axis=-1) for name in names}
    trained = TrainedContents(method, surrogate)
    return _prior(tasks, trained, history, seed, features)


def _learn_by_choice(
    tasks: Tasks,
    candidates: Sequence[AbstractGradientMethod] | None,
    budget: Budget,
    seed: int,
    private: bool,
    on_progress: OnLearnProgress | None,
) -> Prior:
    watch = Watch(budget.seconds)
    lanes = (
        default_lanes(budget, tasks.num_tasks, seed=seed)
        if candidates is None
        else lanes_of(candidates)
    )
    features = screened(tasks, seed=seed)
    with listening(watch):
        selection = select(
            tasks,
            lanes,
            budget,
            seed=seed,
            watch=watch,
            on_progress=on_progress,
            features=features,
            private=private,
        )
        findings = findings_of(tasks, selection, budget, watch)
    if private:
        findings = findings.without_examples()
    features = selection.features
    seen = tasks.with_feature_columns(features) if features.used else tasks
    trained = asked_contents(
        selection.method, selection.learned, selection.members, seen, private=private
    )
    history = selection.history
    if selection.members == 1:
        history = {name: terms[0] for name, terms in history.items()}
    return _prior(tasks, trained, history, seed, features, findings)


def _prior(
    tasks: Tasks,
    trained: TrainedContents,
    history: dict[str, np.ndarray],
    seed: int,
    features: TaskFeatures,
    findings: Findings | None = None,
) -> Prior:
    return Prior(
        tasks.space,
        tasks.direction,
        trained,
        history,
        _trained_on(tasks, seed),
        findings,
        features,
        tasks.value_bounds,
        quantity=tasks.quantity,
    )


def _trained_on(tasks: Tasks, seed: int) -> dict[str, Any]:
    return {
        "tasks": tasks.num_tasks,
        "observations": int(tasks.lengths.sum()),
        "shortest run": int(tasks.lengths.min()),
        "longest run": int(tasks.lengths.max()),
        "seed": int(seed),
    }
