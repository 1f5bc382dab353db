"""Following a study: what its trials have shown, and what a prior would try next."""

import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from metaprior.adapters.histories import switches, with_switches
from metaprior.adapters.optuna._pruned import EarlyStops
from metaprior.adapters.optuna._repeats import StandIns, held_beside, stand_ins
from metaprior.adapters.optuna._study_window import (
    gone,
    in_space,
    news,
    study_window,
    whole_window,
)
from metaprior.adapters.optuna._values import Objectives, OneValue, optimizer_for
from metaprior.belief import Priors
from metaprior.bo import MultiOptimizer, StoppingHint, Window
from metaprior.words import listed

# Workers between the start of a trial and its first parameter are counted up to this number.
MOST_STARTING = 64
# Other workers do not wait for a proposal. If one of them proposed nearly the same point meanwhile
# (a distance in the unit cube), the proposal is recomputed, up to so many times in all.
NEAR = 0.01
MOST_ATTEMPTS = 3

# A study may be deleted and made again under its name: the number alone does not name a trial.
TrialName: TypeAlias = tuple[int, datetime | None]


class StudyProposer:
    """Follows one study and proposes its next points; not to be used by two threads at once.

    - `priors`: of either direction; values of a study in the other one are negated.
    - `seed`: workers with the same seed that see the same trials compute the same list of points,
      and each takes a different one.

    The ranges that the study's trials asked for are a window on the space of the prior, with what
    the prior does not know beside it; a trial outside of it is ignored. Until a trial is complete,
    the window is the whole space.
    """

    def __init__(self, priors: Priors, seed: int):
        self._priors = priors
        self._space = priors.space
        self._seed = seed
        self._warned: set[str] = set()
        self._proposals: dict[TrialName, dict[str, Any]] = {}
        self._start()

    def asked(self, study: Study) -> dict[str, BaseDistribution]:
        """The newest distribution of every parameter that is modelled."""
        self._read(study, _all_trials(study))
        if self._window is None:
            return {}
        names = [name for name, _ in self._window.ranges]
        return {name: self._newest[name] for name in names if name in self._newest}

    def models(self, name: str) -> bool:
        """Whether a proposal has a value for the parameter."""
        return self._window is not None and name in dict(self._window.ranges)

    def propose(
        self, study: Study, trial: FrozenTrial, free: Collection[str] | None = None
    ) -> dict[str, Any]:
        """The point that `trial` should try, in the study's units: the same one on every call;
        empty if the study uses nothing of the prior's space.

        - `free`: the parameters to choose, if another sampler fixes the others.
        """
        known = self._proposals.get(_name(trial))
        if known is None:
            known = self._compute(study, trial, free)
            self._proposals[_name(trial)] = known
        return known

    def complete(self, study: Study, trial: FrozenTrial, name: str) -> dict[str, Any]:
        """The proposal for `trial`; one that has a value for the parameter `name`, if it can have
        one beside the values that the trial has already.

        A trial may depart from its proposal (another sampler, an enqueued value): then it may need
        parameters that did not exist there.
        """
        proposal = self.propose(study, trial)
        if name in proposal or not self.models(name):
            return proposal
        fixed = self._departed(trial.params, name)
        branch = self._optimizer.fork(seed=self._seed_now())
        self._tell_pruned(study, branch)
        assert self._window is not None
        self._proposals[_name(trial)] = self._window.decode(branch.ask(1, fixed=fixed)[0])
        return self._proposals[_name(trial)]

    def stopping(self, study: Study, tolerance: float | None) -> StoppingHint | None:
        """Whether it is worth going on; `None` before the first complete trial."""
        self._read(study, _all_trials(study))
        if self._window is None:
            return None
        branch = self._optimizer.fork(seed=self._seed_now())
        if isinstance(branch, MultiOptimizer):
            raise ValueError(
                f"Study {study.study_name!r} has several objectives or constraints, and the hint "
                "when to stop is about one value; use another rule to end it."
            )
        self._tell_pruned(study, branch)
        return branch.stopping(tolerance)

    def _departed(self, params: dict[str, Any], name: str) -> dict[str, Any]:
        """What a trial has chosen, in the window, and that the parameter `name` exists if that is
        its own choice."""
        assert self._window is not None
        point = self._window.encode(self._in_space(params)) or {}
        own, fixed = switches(self._space), {}
        for i, (other, r) in enumerate(self._window.ranges):
            if own.get(other) == name:
                fixed[f"x{i}"] = r.coordinate(True)
            elif other in params and f"x{i}" in point:
                fixed[f"x{i}"] = point[f"x{i}"]
        return fixed

    def _compute(
        self, study: Study, trial: FrozenTrial, free: Collection[str] | None
    ) -> dict[str, Any]:
        """The next point, recomputed if another worker proposed the same point meanwhile."""
        proposal, trials = {}, _all_trials(study)
        for _ in range(MOST_ATTEMPTS):
            proposal = self._next_point(study, trial, trials, free)
            known = {_name(other): other.params for other in trials}
            trials = _all_trials(study)
            news = [t.params for t in trials if t.params != known.get(_name(t), {})]
            if not any(self._is_near(proposal, params) for params in news):
                break
        return proposal

    def _next_point(
        self,
        study: Study,
        trial: FrozenTrial,
        trials: Sequence[FrozenTrial],
        free: Collection[str] | None,
    ) -> dict[str, Any]:
        self._read(study, trials)
        if self._window is None:
            return {}
        branch = self._optimizer.fork(seed=self._seed_now())
        self._tell_pruned(study, branch)
        running = self._running(trials, trial)
        under_way = [self._under_way(other) for other in running]
        branch.expect([point for point in under_way if point is not None])
        starting = sum(
            point is None and not other.params and other.number < trial.number
            for point, other in zip(under_way, running, strict=True)
        )
        fixed = {} if free is None else self._fixed(free)
        # They are about to take the first points of this list, each its own.
        points = branch.ask(min(starting, MOST_STARTING) + 1, fixed=fixed)
        held = self._told_in_its_place(points[-1])
        if held:
            points = branch.ask(1, fixed=held_beside(fixed, held, self._window.space))
        return self._window.decode(points[-1])

    def _told_in_its_place(self, point: dict[str, Any]) -> dict[str, Any]:
        """What stands for parameters that a trial was not asked for, if the point of the window
        differs from that trial in nothing else; empty if it repeats none."""
        assert self._window is not None
        (row,) = self._window.space.encode([point])
        for name, trial in self._read_trials.items():
            if name not in self._stand_ins:
                told = self._in_window(trial.params) or {}
                self._stand_ins[name] = stand_ins(trial, told, self._window, self._distributions)
            found = self._stand_ins[name]
            if found is not None and found.repeated_by(row):
                return found.held
        return {}

    def _fixed(self, free: Collection[str]) -> dict[str, Any]:
        """Parameters that another sampler fixes, taken from the last trial."""
        assert self._window is not None
        last = max(self._read_trials.values(), key=lambda trial: trial.number, default=None)
        params = in_space(last.params) if last is not None else {}
        fixed = {}
        for i, (name, r) in enumerate(self._window.ranges):
            at = r.coordinate(params[name]) if name in params and name not in free else None
            if at is not None:
                fixed[f"x{i}"] = at
        return fixed

    def _is_near(self, proposal: dict[str, Any], params: dict[str, Any]) -> bool:
        """Whether the parameters that a trial has so far are almost those of the proposal."""
        if self._window is None or self._in_window(params) is None:
            return False
        both = (proposal, {**proposal, **params})
        points = [self._window.encode(self._in_space(p)) for p in both]
        inside = self._optimizer.space.encode([point for point in points if point])
        return len(inside) == 2 and bool(np.abs(inside[0] - inside[1]).max() < NEAR)

    def _start(self) -> None:
        """Forget everything about the trials."""
        self._read_trials: dict[TrialName, FrozenTrial] = {}
        self._distributions: dict[str, dict[BaseDistribution, None]] = {}
        self._newest: dict[str, BaseDistribution] = {}
        self._optional = set(switches(self._space).values())
        self._lacking: Counter[str] = Counter()
        self._shown: set[str] = set()
        self._constraints = list(self._priors.constraints)
        self._look_through(whole_window(self._space))

    def _look_through(self, window: Window | None) -> None:
        """Begin again, with nothing told."""
        self._window = window
        self._stand_ins: dict[TrialName, StandIns | None] = {}
        if window is not None:
            self._optimizer = optimizer_for(self._priors, self._constraints, window)

    def _read(self, study: Study, trials: Sequence[FrozenTrial]) -> None:
        """Read the trials that finished since the last call."""
        finished = {_name(trial): trial for trial in trials if trial.state.is_finished()}
        if not self._read_trials.keys() <= finished.keys():
            self._start()  # another study
        new = [trial for name, trial in finished.items() if name not in self._read_trials]
        self._read_trials = finished
        for trial in new:
            self._note_distributions(trial)
        if self._distributions:
            window = study_window(self._space, self._distributions, self._shown, self._lacking)
            is_new_constraint = self._note_constraints(new)
            if window != self._window or is_new_constraint:
                self._look_through(window)
                new = list(finished.values())
            self._warn_of_what_differs(study, window)
        objectives = Objectives(study, self._priors)
        for trial in new:
            self._tell(objectives, trial)

    def _note_distributions(self, trial: FrozenTrial) -> None:
        # A trial that failed may have asked for a part of what it would have needed.
        if trial.state == TrialState.FAIL:
            return
        # A pruned trial that reported nothing may have been stopped before it asked for all.
        if trial.state == TrialState.COMPLETE or trial.intermediate_values:
            self._lacking.update(name for name in self._optional if name not in trial.params)
            self._shown |= set(self._space.existing(self._in_space(trial.params)))
        if not trial.distributions.keys() <= self._distributions.keys():
            self._stand_ins = {}
        for name, distribution in trial.distributions.items():
            self._distributions.setdefault(name, {})[distribution] = None
            self._newest[name] = distribution

    def _note_constraints(self, trials: Sequence[FrozenTrial]) -> bool:
        """Whether trials report constraints that were not known of."""
        reported = {n for t in trials if t.state == TrialState.COMPLETE for n in t.constraints}
        new = sorted(reported.difference(self._constraints))
        self._constraints += new
        return bool(new)

    def _tell_pruned(self, study: Study, branch: OneValue | MultiOptimizer) -> None:
        """Tell `branch` of the trials that were stopped early.

        What they are at most follows from all complete trials, those that came after them
        included, so it is worked out anew for every proposal.
        """
        if len(study.directions) > 1:  # Optuna does not prune their trials
            return
        stops = EarlyStops(self._read_trials.values(), study.direction)
        objectives = Objectives(study, self._priors)
        for trial in stops.pruned:
            point = self._in_window(trial.params)
            if point is not None:
                branch.tell(point, objectives.limit(stops.limit(trial)), stopped=True)

    def _tell(self, objectives: Objectives, trial: FrozenTrial) -> None:
        # What a pruned trial says depends on trials that may come after it: see `_tell_pruned`.
        if self._window is None or trial.state == TrialState.PRUNED:
            return
        if trial.state == TrialState.FAIL:
            # It may have asked for some of its parameters only: the others it would have got.
            params = {**self._proposals.get(_name(trial), {}), **trial.params}
            if self._distributions:
                params = {name: v for name, v in params.items() if name in self._distributions}
            point = self._in_window(params)
            if point is not None and all(name in params for name in self._names(point)):
                self._optimizer.tell(point, None)
            return
        point = self._in_window(trial.params)
        if point is not None and trial.values is not None:
            self._optimizer.tell(point, objectives.values(trial))

    def _in_window(self, params: dict[str, Any]) -> dict[str, Any] | None:
        """The point of the window that a trial tried; `None` if it lies outside."""
        assert self._window is not None
        if not any(name in params for name, _ in self._window.ranges):
            return None
        return self._window.encode(self._in_space(params))

    def _in_space(self, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters of a trial as the space of the prior holds them."""
        return with_switches(in_space(params), self._space)

    def _names(self, point: dict[str, Any]) -> list[str]:
        """The parameters that a point of the window stands for."""
        assert self._window is not None
        own = switches(self._space)
        return [
            name
            for i, (name, _) in enumerate(self._window.ranges)
            if f"x{i}" in point
            and name not in own
            and (name in self._distributions or not self._distributions)
        ]

    def _under_way(self, other: FrozenTrial) -> dict[str, Any] | None:
        """Where a running trial is, or will be as far as this process knows."""
        return self._in_window({**self._proposals.get(_name(other), {}), **other.params})

    def _running(self, trials: Sequence[FrozenTrial], trial: FrozenTrial) -> list[FrozenTrial]:
        """Running trials other than `trial`; what was proposed to finished ones is forgotten."""
        for name in self._read_trials:
            self._proposals.pop(name, None)
        return [t for t in trials if t.state == TrialState.RUNNING and t.number != trial.number]

    def _seed_now(self) -> int:
        """Another one after every finished trial, the same for all who have seen as many."""
        return int(
            np.random.SeedSequence([self._seed, len(self._read_trials)]).generate_state(1)[0]
        )

    def _warn_of_what_differs(self, study: Study, window: Window | None) -> None:
        if window is None:
            self._warn(
                [""],
                f"Nothing of the prior can be used for study {study.study_name!r}: its parameters "
                f"are {list(self._distributions)}, those of the prior are {self._space}; "
                "they are sampled independently until it gets a prior that was learned for them.",
            )
            return
        new = self._unsaid(news(window))
        lost = self._unsaid(gone(window, self._distributions, self._shown))
        sentences = []
        if new:
            sentences.append(
                f"Study {study.study_name!r} goes beyond its prior: "
                f"{listed(list(new.values()), 8)}; there, the trials of this study decide."
            )
        if lost:
            sentences.append(
                f"Study {study.study_name!r} does not ask for what its prior knows: "
                f"{listed(list(lost.values()), 8)}."
            )
        self._warn([*new, *lost], " ".join(sentences))

    def _unsaid(self, found: dict[str, str]) -> dict[str, str]:
        return {name: words for name, words in found.items() if name not in self._warned}

    def _warn(self, about: Collection[str], sentence: str) -> None:
        """Warn of each thing once in the life of this proposer."""
        if not self._warned.issuperset(about):
            self._warned.update(about)
            warnings.warn(sentence, UserWarning, stacklevel=2)


def _all_trials(study: Study) -> list[FrozenTrial]:
    """All trials, whichever bracket they are in: HyperbandPruner shows a sampler those of the next
    trial's bracket, which would be proposed again in the others. A complete trial has the same
    value in every bracket, and a pruned one is compared with those that came further."""
    return Study.get_trials(study, deepcopy=False)


def _name(trial: FrozenTrial) -> TrialName:
    return trial.number, trial.datetime_start
