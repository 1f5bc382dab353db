"""Predictions for held-out runs, for the race, the exam and the replay.

A question is a prior, a run and how many of its first points have been seen; the answer is a
prediction at every point of the run. Methods with a form in NumPy are asked there, all priors that
answer for one run together: nothing has to be compiled. What has no such form is answered by one
compiled program, in blocks of questions of one size.
"""

import abc
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.special import ndtr

from metaprior.belief import (
    AbstractBelief,
    ConditionedBelief,
    MemberMoments,
    has_belief,
    pick,
    seen_beside,
    stacked_belief,
)
from metaprior.data import Run, Space
from metaprior.gp import compile_quickly, float64
from metaprior.meta import chunk_here, entry
from metaprior.methods import AbstractMethod, AbstractSurrogate, TrainedContents

BLOCK = 64
LOG_2_PI = float(np.log(2.0 * np.pi))


class Questions(NamedTuple):
    """What is asked of several priors.

    - `who`, `run`, `seen`: of each question the prior, the run, and how many of its first points
      have been seen.
    - `x`, `y`: the runs.
    """

    who: Int[np.ndarray, " questions"]
    run: Int[np.ndarray, " questions"]
    seen: Int[np.ndarray, " questions"]
    x: Float[np.ndarray, "runs points d"]
    y: Float[np.ndarray, "runs points"]


class Predictions(NamedTuple):
    """Mean and variance of an observation at each point, and log density and probability of the
    observed value; not finite where a prior has diverged."""

    mean: Float[np.ndarray, "questions points"]
    variance: Float[np.ndarray, "questions points"]
    log_density: Float[np.ndarray, "questions points"]
    cdf: Float[np.ndarray, "questions points"]


class AbstractPredictors(abc.ABC):
    """Priors side by side, each of which predicts alone."""

    @abc.abstractmethod
    def predict(self, questions: Questions) -> Predictions:
        """The answer to each question."""

    def expect(self, questions: Questions) -> Predictions:
        """The answers for a caller who looks at means and variances only; the others may be NaN."""
        return self.predict(questions)

    def condition(
        self, who: int, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]
    ) -> ConditionedBelief | None:
        """One of the priors after the points of a run; `None` if it has no belief to draw from."""
        return None


def predictors_of(
    method: AbstractMethod, surrogates: AbstractSurrogate, num_columns: int
) -> AbstractPredictors:
    """What `method` has learned several times: surrogates, stacked along a leading axis."""
    contents = TrainedContents(method, surrogates)
    if not has_belief(contents.settings):
        return CompiledPredictors(surrogates)
    belief = stacked_belief(contents.settings, contents.arrays, num_columns)
    num = len(next(iter(contents.arrays.values())))
    return BelievingPredictors(belief, num, num_columns)


class BelievingPredictors(AbstractPredictors):
    """Priors in NumPy, as one belief with the members of all of them."""

    def __init__(self, belief: AbstractBelief, num: int, num_columns: int):
        """- `num`: how many priors there are; each has equally many members."""
        self._belief = belief
        groups = belief.groups(np.zeros((0, num_columns)), np.zeros(0))
        self._size = sum(group.members.count for group in groups) // num

    def predict(self, questions: Questions) -> Predictions:
        found = _nothing(questions)
        for run in np.unique(questions.run):
            asked = np.flatnonzero(questions.run == run)
            priors, place = np.unique(questions.who[asked], return_inverse=True)
            predicted = self._foresight(priors, questions.x[run], questions.y[run])
            for seen in np.unique(questions.seen[asked]):
                now = questions.seen[asked] == seen
                answers = predicted(int(seen))
                for all_answers, own in zip(found, answers, strict=True):
                    all_answers[asked[now]] = own[place[now]]
        return found

    def _foresight(
        self, priors: Int[np.ndarray, " p"], x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]
    ) -> Callable[[int], Predictions]:
        """What each of some priors predicts at all points of a run, from so many of them."""

        def predicted(seen: int) -> Predictions:
            try:
                with np.errstate(all="ignore"):
                    return self._mixed(together(seen), y)
            except (FloatingPointError, np.linalg.LinAlgError):
                return alone(seen)

        def alone(seen: int) -> Predictions:
            """For want of one that has not diverged, a prior answers nothing."""
            if len(priors) == 1:
                return Predictions(*np.full((4, 1, len(y)), np.nan))
            each = [self._foresight(priors[i : i + 1], x, y)(seen) for i in range(len(priors))]
            return Predictions(*(np.concatenate(parts) for parts in zip(*each, strict=True)))

        members = priors[:, None] * self._size + np.arange(self._size)
        with np.errstate(all="ignore"):
            together = pick(self._belief, members.ravel().tolist()).foresight(x, y)
        return predicted

    def _mixed(self, moments: MemberMoments, y: Float[np.ndarray, " n"]) -> Predictions:
        """Each prior is the mixture of its members, all of them as likely."""
        mean, function_variance = (part.reshape(-1, self._size, len(y)) for part in moments[:2])
        noise = moments.noise_variance.reshape(-1, self._size, 1)
        variance = function_variance + noise
        surprise = (y - mean) / np.sqrt(variance)
        densities = -0.5 * (surprise**2 + np.log(variance) + LOG_2_PI)
        log_density = np.logaddexp.reduce(densities, axis=1) - np.log(self._size)
        cdf = np.mean(ndtr(surprise), axis=1)
        return Predictions(
            np.mean(mean, axis=1),
            np.mean(variance, axis=1) + np.var(mean, axis=1),
            log_density,
            cdf,
        )


class ConditionedPredictors(AbstractPredictors):
    """Beliefs side by side, each conditioned on the points seen, as an optimiser does."""

    def __init__(self, beliefs: Sequence[AbstractBelief]):
        self._beliefs = beliefs

    def condition(self, who, x, y) -> ConditionedBelief:
        return self._beliefs[who].condition(x, y)

    def predict(self, questions: Questions) -> Predictions:
        return self._each(questions, densities=True)

    def expect(self, questions: Questions) -> Predictions:
        return self._each(questions, densities=False)

    def _each(self, questions: Questions, *, densities: bool) -> Predictions:
        found = _nothing(questions)
        asked = zip(*(part.tolist() for part in questions[:3]), strict=True)
        for i, (who, run, seen) in enumerate(asked):
            answers = self._answers(who, questions.x[run], questions.y[run], seen, densities)
            for all_answers, own in zip(found, answers, strict=True):
                all_answers[i] = own
        return found

    def _answers(self, who: int, x, y, seen: int, densities: bool) -> Predictions:
        unknown = np.full(len(y), np.nan)
        try:
            with np.errstate(all="ignore"):
                after = self._beliefs[who].condition(x[:seen], y[:seen])
                moments = after.moments(x)
                if not densities:
                    return Predictions(moments.mean, moments.variance, unknown, unknown)
                answers = moments.mean, moments.variance, after.log_density(x, y), after.cdf(x, y)
                return Predictions(*answers)
        except (FloatingPointError, np.linalg.LinAlgError):
            return Predictions(unknown, unknown, unknown, unknown)


class FeaturedPredictors(AbstractPredictors):
    """Beliefs over the points of a space, asked about runs that have columns of task features."""

    def __init__(self, beliefs: Sequence[AbstractBelief], space: Space):
        self._beliefs = beliefs
        self._space = space
        self._about: dict[bytes, ConditionedPredictors] = {}

    def predict(self, questions: Questions) -> Predictions:
        return self._each(questions, ConditionedPredictors.predict)

    def expect(self, questions: Questions) -> Predictions:
        return self._each(questions, ConditionedPredictors.expect)

    def _each(
        self,
        questions: Questions,
        answer: Callable[[ConditionedPredictors, Questions], Predictions],
    ) -> Predictions:
        found, space = _nothing(questions), self._space
        columns = space.columns_of_points(questions.x.shape[2])
        for run in np.unique(questions.run):
            asked = np.flatnonzero(questions.run == run)
            about = self._knowing(np.delete(questions.x[run, 0], columns))
            who, seen = questions.who[asked], questions.seen[asked]
            x = questions.x[:, :, columns]
            own = Questions(who, questions.run[asked], seen, x, questions.y)
            for all_answers, each in zip(found, answer(about, own), strict=True):
                all_answers[asked] = each
        return found

    def _knowing(self, known: Float[np.ndarray, " f"]) -> ConditionedPredictors:
        """The beliefs about tasks with these features: made once, as they remember runs."""
        key, space = known.tobytes(), self._space
        if key not in self._about:
            places = space.num_coded, known, space.num_added
            about = [seen_beside(belief, *places) for belief in self._beliefs]
            self._about[key] = ConditionedPredictors(about)
        return self._about[key]


class CompiledPredictors(AbstractPredictors):
    """Surrogates, stacked along a leading axis.

    Blocks have one size, so the program does not depend on how many surrogates or questions there
    are.
    """

    def __init__(self, surrogates: AbstractSurrogate):
        self._surrogates = surrogates

    @float64
    def predict(self, questions: Questions) -> Predictions:
        who, run, seen, x, y = questions
        found = _nothing(questions)
        for first in range(0, len(who), BLOCK):
            rows = np.arange(first, min(first + BLOCK, len(who)))
            padded = np.resize(rows, BLOCK)
            asked = entry(self._surrogates, who[padded])
            own = run[padded]
            runs = tuple(jnp.asarray(array) for array in (x[own], y[own], seen[padded]))
            answers = _predict_block(asked, runs, jnp.asarray(len(rows)), chunk_here(None) is None)
            for all_answers, each in zip(found, answers, strict=True):
                all_answers[rows] = np.asarray(each)[: len(rows)]
        return found


def _nothing(questions: Questions) -> Predictions:
    """Room for the answers."""
    shape = len(questions.who), questions.y.shape[1]
    return Predictions(*(np.full(shape, np.nan) for _ in Predictions._fields))


@compile_quickly
def _predict_block(surrogates, runs, count, side_by_side: bool):
    """Answers of a block, of which the first `count` matter."""
    arrays, static = eqx.partition(surrogates, eqx.is_array)

    def one(question) -> tuple[Float[Array, " points"], ...]:
        arrays, x, y, size = question
        posterior = eqx.combine(arrays, static).condition(Run(x, y, size))

        def at(point, value):
            moments = posterior.moments(point)
            density, cdf = posterior.log_density(point, value), posterior.cdf(point, value)
            return moments.mean, moments.variance, density, cdf

        return jax.vmap(at)(x, y)

    questions = arrays, *runs
    if side_by_side:
        return jax.vmap(one)(questions)

    def step(i, answers):
        found = one(jax.tree.map(lambda leaf: leaf[i], questions))
        return tuple(a.at[i].set(f) for a, f in zip(answers, found, strict=True))

    return jax.lax.fori_loop(0, count, step, (jnp.zeros(runs[1].shape),) * len(Predictions._fields))
