"""Contenders: whatever takes part in a study learns from past runs, and what it has learned
optimises and predicts unseen tasks. Studies know nothing else of it.

Methods are compiled, with seeds and tasks as batch dimensions; `learn` makes priors that are asked
one after another, in NumPy (`_asked.py`).
"""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from jaxtyping import Array, Key

from metaprior.data import Tasks
from metaprior.lab.environments import AbstractTask, Family
from metaprior.lab.policies import (
    AbstractCompiledAcquisition,
    AbstractPolicy,
    CompiledConfidenceBound,
    CompiledLatentBound,
    CompiledRestlessBound,
    RandomSearch,
    SurrogatePolicy,
)
from metaprior.lab.studies._batches import ContextSplit, Judged, judge_each, race_each, train_each
from metaprior.lab.studies._races import PolicyRace, fixed_gp_policy
from metaprior.meta import stack
from metaprior.methods import AbstractMethod, AbstractSurrogate

ACQUISITIONS: dict[str, type[AbstractCompiledAcquisition]] = {
    "ucb": CompiledConfidenceBound,
    "restless": CompiledRestlessBound,
    "latent": CompiledLatentBound,
}


class AbstractLearned(abc.ABC):
    """What was learned from several sets of past runs: one entry for each."""

    @abc.abstractmethod
    def race(
        self,
        tasks: AbstractTask,
        num_queries: int,
        *,
        keys: Key[Array, "batch tasks"],
        noise_std: float,
        chunk: int | None = None,
    ) -> PolicyRace:
        """One run of each entry on each of its tasks; arrays of the result have both axes."""

    @abc.abstractmethod
    def judge(
        self, exams: ContextSplit, context_sizes: Sequence[int], *, chunk: int | None = None
    ) -> Judged:
        """Predictions of each entry for its tasks, given the first points of their contexts."""


LearnedT = TypeVar("LearnedT", bound=AbstractLearned)


class AbstractContender(abc.ABC, Generic[LearnedT]):
    """Learns from past runs."""

    @abc.abstractmethod
    def begin(self, count: int) -> LearnedT:
        """What is used before there is any past run, for `count` entries."""

    @abc.abstractmethod
    def learn(
        self,
        past: Sequence[Tasks],
        *,
        keys: Key[Array, " batch"],
        room: int | None = None,
        chunk: int | None = None,
        before: LearnedT | None = None,
    ) -> LearnedT:
        """Learn from each set of past runs.

        - `room`: sets of 1 to `room` past runs, all of one length, share compiled code.
        - `before`: what it had learned from all but the last of these runs, if it was asked.
        """


@dataclass(frozen=True)
class CompiledBatch(AbstractLearned):
    """Policies, stacked, and the surrogates that they ask if there are any."""

    policies: AbstractPolicy
    surrogates: AbstractSurrogate | None = None

    @staticmethod
    def asking(surrogates: AbstractSurrogate, acquisition: str, family: Family) -> "CompiledBatch":
        """Surrogates, stacked, that are asked by an acquisition."""
        policy = SurrogatePolicy(
            surrogate=surrogates, acquisition=ACQUISITIONS[acquisition](), space=family.space
        )
        return CompiledBatch(policy, surrogates)

    def race(self, tasks, num_queries, *, keys, noise_std, chunk=None):
        return race_each(
            self.policies,
            tasks,
            num_queries,
            keys=keys,
            noise_std=noise_std,
            infer=True,
            chunk=chunk,
        )

    def judge(self, exams, context_sizes, *, chunk=None):
        if self.surrogates is None:
            raise ValueError("Random search predicts nothing; leave it out.")
        return judge_each(self.surrogates, exams, context_sizes, chunk=chunk)


@dataclass(frozen=True)
class CompiledContender(AbstractContender[CompiledBatch]):
    """A method, asked by one of the compiled acquisitions."""

    method: AbstractMethod
    acquisition: str
    family: Family

    def begin(self, count):
        """As in the paper: a fixed GP and upper confidence bounds."""
        policies = stack([fixed_gp_policy(self.family)] * count)
        return CompiledBatch(policies, policies.surrogate)

    def learn(self, past, *, keys, room=None, chunk=None, before=None):
        methods = [self.method] * len(past)
        surrogates = train_each(methods, past, keys=keys, room=room, chunk=chunk)
        return CompiledBatch.asking(surrogates, self.acquisition, self.family)


@dataclass(frozen=True)
class RandomContender(AbstractContender[CompiledBatch]):
    """Random search, which learns nothing."""

    family: Family

    def begin(self, count):
        return CompiledBatch(RandomSearch(self.family.space))

    def learn(self, past, *, keys, room=None, chunk=None, before=None):
        return self.begin(len(past))
