"""Trainings side by side, each of one configuration without one fold.

A batch has a fixed number of places. The race, the confirmation of its winner and the final
training are batches of one size, so that all of them are one compiled loop.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from metaprior.data import Tasks, fit_standardiser
from metaprior.gp import float64
from metaprior.learning._exam import Answers, Exam, Fold, examine
from metaprior.learning._progress import Watch
from metaprior.meta import CHUNK, HeldOut
from metaprior.methods import AbstractSurrogate, FPacohMap, start_trainings, surrogates_of


class Entry(NamedTuple):
    """One training: of this configuration, from this seed, without this fold (or with all)."""

    method: FPacohMap
    fold: int | None
    seed: int


class Batch:
    """Trainings of configurations of one shape on one set of tasks."""

    @float64
    def __init__(
        self,
        entries: Sequence[Entry],
        tasks: Tasks,
        folds: Sequence[Fold],
        *,
        places: int,
        seed: int,
    ):
        self.entries = list(entries)
        padded = [*entries, *[entries[0]] * (places - len(entries))]
        self._methods = [entry.method for entry in padded]
        self._folds = np.array([entry.fold or 0 for entry in padded])
        self._standardiser = fit_standardiser(tasks.x, tasks.y, tasks.mask)
        blocks = [(0, 0) if e.fold is None else folds[e.fold][:2] for e in padded]
        first, count = np.array(blocks).T
        root = jax.random.key(seed)
        # Configurations of one seed start from the same network: what differs is what they say.
        keys = [jax.random.fold_in(root, entry.seed) for entry in padded]
        self._trainings = start_trainings(
            self._methods,
            tasks,
            held_out=HeldOut(jnp.asarray(first), jnp.asarray(count)),
            keys=jnp.stack(keys),
        )

    @property
    def steps(self) -> int:
        """Steps that trainings which never stopped have behind them."""
        return self._trainings.step

    def train(self, steps: int, going_on: Bool[np.ndarray, " entries"], watch: Watch) -> None:
        """Train those that go on until they have `steps` behind them, or the time is over."""
        while self._trainings.step < steps and not watch.share(1.0):
            self._trainings.advance(
                min(CHUNK, steps - self._trainings.step), self._in_places(going_on)
            )

    def surrogates(self) -> AbstractSurrogate:
        """What the trainings can be used as, stacked, padding included."""
        return surrogates_of(self._methods, self._trainings.models, self._standardiser)

    def answers(self, exam: Exam, asked: Bool[np.ndarray, " entries"]) -> Answers:
        """Answers to the exam, each entry's to that of its fold; others' do not count."""
        found = examine(self.surrogates(), exam, self._folds, self._in_places(asked))
        return Answers(*(array[: len(self.entries)] for array in found))

    def _in_places(self, entries: Bool[np.ndarray, " entries"]) -> Bool[np.ndarray, " places"]:
        return np.pad(entries, (0, len(self._methods) - len(entries)))
