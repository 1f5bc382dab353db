"""Trainings side by side, each of one configuration with one fold held out.

A batch has a fixed number of places. The race, the confirmation of its winner and the final
training are batches of one size, so that they share one compiled loop.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from metaprior.data import Tasks, fit_standardiser
from metaprior.gp import compile_quickly, float64
from metaprior.learning._exam import Answers, Exam, Fold, examine
from metaprior.learning._predict import predictors_of
from metaprior.learning._progress import Watch
from metaprior.meta import CHUNK, HeldOut
from metaprior.methods import (
    AbstractGradientMethod,
    AbstractSurrogate,
    start_trainings,
    surrogates_of,
)


class Trainee(NamedTuple):
    """One training: of this configuration, from this seed, without this fold (or on all runs)."""

    method: AbstractGradientMethod
    fold: int | None
    seed: int


class Batch:
    """Trainings of configurations of one class and shape on one set of tasks."""

    @float64
    def __init__(
        self,
        entries: Sequence[Trainee],
        tasks: Tasks,
        folds: Sequence[Fold],
        *,
        places: int,
        seed: int,
        few_steps: bool = False,
    ):
        self.entries = list(entries)
        padded = [*entries, *[entries[0]] * (places - len(entries))]
        self._methods = [entry.method for entry in padded]
        self._folds = np.array([entry.fold or 0 for entry in padded])
        self._standardiser = fit_standardiser(tasks.x, tasks.y, tasks.mask, tasks.space)
        blocks = [(0, 0) if e.fold is None else folds[e.fold][:2] for e in padded]
        first, count = np.array(blocks).T
        # Configurations of one seed start from the same network and differ in their settings only.
        members = np.array([entry.seed for entry in padded])
        keys = _keys(jnp.asarray(np.asarray(seed)), jnp.asarray(members))
        self._trainings = start_trainings(
            self._methods,
            tasks,
            held_out=HeldOut(jnp.asarray(first), jnp.asarray(count)),
            keys=keys,
            few_steps=few_steps,
        )

    @property
    def steps(self) -> int:
        """Steps taken by the trainings that never stopped."""
        return self._trainings.step

    @property
    def history(self) -> dict[str, Float[np.ndarray, "entries steps"]]:
        """The objective's terms of each entry, one value per step; NaN where it took none."""
        return {name: t[: len(self.entries)] for name, t in self._trainings.history.items()}

    def train(
        self,
        steps: int,
        going_on: Bool[np.ndarray, " entries"],
        watch: Watch,
        *,
        share: float = 1.0,
    ) -> None:
        """Train the entries that continue up to step number `steps`, or until this share of the
        time for training is up."""
        while self._trainings.step < steps and not watch.share(share):
            self._trainings.advance(
                min(CHUNK, steps - self._trainings.step), self._in_places(going_on)
            )

    def surrogates(self) -> AbstractSurrogate:
        """The surrogates of the trainings, stacked, padding included."""
        return surrogates_of(self._methods, self._trainings.models, self._standardiser)

    def answers(self, exam: Exam, asked: Bool[np.ndarray, " entries"]) -> Answers:
        """The answers of each entry to the exam of its fold; those not `asked` do not count."""
        surrogates, num_columns = self.surrogates(), exam.x.shape[2]
        priors = predictors_of(self._methods[0], surrogates, num_columns)
        found = examine(priors, exam, self._folds, self._in_places(asked))
        return Answers(*(array[: len(self.entries)] for array in found))

    def _in_places(self, entries: Bool[np.ndarray, " entries"]) -> Bool[np.ndarray, " places"]:
        return np.pad(entries, (0, len(self._methods) - len(entries)))


@compile_quickly
def _keys(seed: Int[Array, ""], members: Int[Array, " places"]) -> Key[Array, " places"]:
    root = jax.random.key(seed)
    return jax.vmap(lambda member: jax.random.fold_in(root, member))(members)
