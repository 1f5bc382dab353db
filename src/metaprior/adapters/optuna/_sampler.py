"""A sampler of Optuna that starts where past studies ended."""

import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from metaprior.adapters.optuna._distributions import nearest_value
from metaprior.adapters.optuna._proposer import StudyProposer
from metaprior.adapters.optuna._study_window import as_offered, shared_range
from metaprior.adapters.optuna._trial_seeded import TrialSeededSampler
from metaprior.adapters.optuna._values import VALUE, Objectives
from metaprior.adapters.optuna._version_store import pack, unpack
from metaprior.belief import Prior, Priors
from metaprior.bo import StoppingHint
from metaprior.data import Features, Space
from metaprior.store import is_folder_of_priors, load, load_priors

if TYPE_CHECKING:
    from metaprior.adapters.optuna._lifelong import LifelongSampler


class MetaPriorSampler(BaseSampler):
    """Proposes the trials of a study from a prior that was learned from past studies.

    - `prior`: what `metaprior.learn` or `metaprior.load` returned, or the folder of a saved one;
      for a study of several objectives, or with constraints, `Priors` with one for each, or their
      folder. Names of objectives are those of `study.set_metric_names`, if it was called; else the
      order counts. Names of constraints are the keys of `trial.set_constraint`.
    - `features`: features of the task, by name, for a prior that was learned with features of
      tasks; by default, the user attributes of the study that are called like them.
    - `seed`: the same seed and the same results give the same trials; `None` draws one.
    - `independent_sampler`: for parameters that the prior does not know, until a trial has shown
      them; random by default.

    The first trial is proposed from the prior, too. Bounds, steps and choices of the study are
    respected where they differ from those of past studies. Wider bounds, new choices and new
    parameters are explored by what the study itself shows; parameters of the prior that the study
    does not ask for are held in the middle of their range. Trials running in other threads,
    processes and machines are taken into account, so that each worker tries a different point. If
    trials report constraints, improvement is weighted by the probability of being feasible; a
    constraint without a prior is modelled from the study alone. With several objectives, the next
    trial is the one with the largest expected hypervolume improvement.
    """

    def __init__(
        self,
        prior: Prior | Priors | str | Path,
        *,
        features: Features | None = None,
        seed: int | None = None,
        independent_sampler: BaseSampler | None = None,
    ):
        self._priors = _priors(prior)
        if features is not None:
            self._priors.for_task(features)  # raises for what the priors do not know
        self._features = None if features is None else dict(features)
        self._seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        self._independent = (
            TrialSeededSampler(self._seed) if independent_sampler is None else independent_sampler
        )
        self._forget()

    @classmethod
    def lifelong(
        cls,
        storage: str | BaseStorage,
        *,
        name: str,
        folder: str | Path | None = None,
        artifact_store: Any = None,
        space: Space | None = None,
        budget: str | float = "normal",
        background: bool = False,
        seed: int | None = None,
        expires: float = 120.0,
    ) -> "LifelongSampler":
        """A sampler whose prior is learned again after every study that it has sampled.

        - `storage`: that of the studies, as Optuna takes it; `name`: of the sequence they form.
        - `folder`, `artifact_store`: where the versions of the prior are kept: one of the two. All
          workers must see it.
        - `space`: the dimensions; by default those of the finished studies.
        - `budget`: how much `metaprior.learn` tries.
        - `background`: learn in another process, while the study continues with the last version.
        - `expires`: seconds without a heartbeat after which a learning worker counts as dead.
        """
        from metaprior.adapters.optuna._lifelong import lifelong_sampler

        return lifelong_sampler(
            storage,
            name=name,
            folder=folder,
            artifact_store=artifact_store,
            space=space,
            budget=budget,
            background=background,
            seed=seed,
            expires=expires,
        )

    @property
    def prior(self) -> Prior:
        """The prior of the objective, or of the first one."""
        return next(iter(self._priors.objectives.values()))

    @property
    def priors(self) -> Priors:
        """All priors that trials are proposed from, by name."""
        return self._priors

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The parameters that are modelled, as far as trials have shown them.

        Before the first complete trial the study's distributions are unknown, and
        `sample_independent` returns the proposal parameter by parameter.
        """
        with self._lock:
            return self._proposer(study).asked(study)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The proposal for this trial, all parameters at once.

        Parameters that another sampler fixes (`PartialFixedSampler`) are not in `search_space`.
        """
        if not search_space:
            return {}
        with self._lock:
            proposer = self._proposer(study)
            others = proposer.asked(study).keys() - search_space.keys()
            proposal = proposer.propose(study, trial, search_space.keys() if others else None)
            # What is modelled and not proposed does not exist there: nothing will ask for it.
            asked = [name for name in search_space if name in proposal or not proposer.models(name)]
        return {
            name: self._value(proposal, study, trial, name, search_space[name]) for name in asked
        }

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """The parameter's part of the proposal for this trial, if the prior knows it."""
        proposal = {}
        shared = shared_range(self._priors.space, param_name, param_distribution)
        with self._lock:
            proposer = self._proposer(study)
            if shared is not None or proposer.models(param_name):
                proposal = proposer.complete(study, trial, param_name)
        return self._value(proposal, study, trial, param_name, param_distribution)

    def stopping(self, study: Study, tolerance: float | None = None) -> StoppingHint | None:
        """Whether it is worth going on with a study of one objective; `None` before its first
        complete trial. See `StopWhenDone` for a callback that ends the study.

        - `tolerance`: what is near enough to the optimum, in the units of the value; by default a
          twentieth of the distance from the median of the function to its optimum.
        """
        with self._lock:
            return self._proposer(study).stopping(study, tolerance)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._independent.before_trial(study, trial)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        self._independent.after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        """Reseed the independent sampler.

        The prior's seed stays: workers avoid each other by computing the same list of points and
        taking different ones from it.
        """
        self._independent.reseed_rng()

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another process: the prior as its files. Studies are read again there."""
        objectives, constraints = self._priors.objectives, self._priors.constraints
        packed = (
            {name: _packed(prior) for name, prior in objectives.items()},
            {n: None if prior is None else _packed(prior) for n, prior in constraints.items()},
        )
        here = ("_priors", "_lock", "_proposers")
        return {"packed": packed, **{k: v for k, v in vars(self).items() if k not in here}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        packed = vars(self).pop("packed")
        objectives, constraints = packed
        self._priors = Priors(
            {name: _unpacked(data) for name, data in objectives.items()},
            {n: None if data is None else _unpacked(data) for n, data in constraints.items()},
        )
        self._forget()

    def _value(
        self,
        proposal: Mapping[str, Any],
        study: Study,
        trial: FrozenTrial,
        name: str,
        distribution: BaseDistribution,
    ) -> Any:
        """The value that `proposal` has for a parameter; without one, an independent draw."""
        offered = None
        if name in proposal:
            offered = as_offered(proposal[name], self._priors.space, name, distribution)
        if offered is None:
            return self._independent.sample_independent(study, trial, name, distribution)
        return nearest_value(offered, distribution)

    def _forget(self) -> None:
        self._lock = threading.RLock()
        self._proposers: dict[str, StudyProposer] = {}

    def _known(self, study: Study) -> Features:
        """What is known of the task of a study."""
        if self._features is not None:
            return self._features
        # A bracket of Hyperband is a study without `user_attrs`.
        attributes = study._storage.get_study_user_attrs(study._study_id)
        known: dict[str, Any] = {}
        for prior in self._priors.learned.values():
            own = {n: attributes[n] for n in prior.features.names if n in attributes}
            prior.features.code(own, where=f"study {study.study_name!r}")  # an error names it
            known |= own
        return known

    def _proposer(self, study: Study) -> StudyProposer:
        if study.study_name not in self._proposers:
            Objectives(study, self._priors)  # raises if they do not fit
            priors = self._priors.for_task(self._known(study))
            self._proposers[study.study_name] = StudyProposer(priors, self._seed)
        return self._proposers[study.study_name]


def _priors(given: Prior | Priors | str | Path) -> Priors:
    """What is given, or in the folder that is named."""
    if isinstance(given, Priors):
        return given
    if isinstance(given, Prior):
        return Priors({VALUE: given})
    return load_priors(given) if is_folder_of_priors(given) else Priors({VALUE: load(given)})


def _packed(prior: Prior) -> bytes:
    """A prior as its files."""
    with tempfile.TemporaryDirectory() as folder:
        return pack(prior.save(Path(folder) / "prior"))


def _unpacked(data: bytes) -> Prior:
    with tempfile.TemporaryDirectory() as folder:
        return load(unpack(data, Path(folder) / "prior"))
