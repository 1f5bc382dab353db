"""Predictions of several priors at once: in NumPy as compiled, each alone, whatever is asked."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metaprior.belief import AveragedBelief, _read
from metaprior.data import blank_standardiser
from metaprior.gp import float64
from metaprior.learning._predict import (
    BelievingPredictors,
    CompiledPredictors,
    ConditionedPredictors,
    Questions,
    predictors_of,
)
from metaprior.meta import stack
from metaprior.methods import ABLR, FPacohMap, FPacohVI, LearnedGP, NeuralProcess
from tests.learning.answers import LastSeen

NUM_COLUMNS, NUM_PRIORS, CAPACITY = 2, 3, 8
METHODS = {
    "ABLR": ABLR(),
    "FPacohMap": FPacohMap(offset=True, amplitude=True, warp=True),
    "FPacohVI": FPacohVI(num_priors=4),
    "LearnedGP": LearnedGP(),
}


@float64
def untrained(method):
    """Several priors of one method, each with numbers of its own."""
    keys = jax.random.split(jax.random.key(0), NUM_PRIORS)
    # Some models begin with the same numbers, whatever the key.
    models = [moved(method.initial(NUM_COLUMNS, key=key), 0.1 * i) for i, key in enumerate(keys)]
    standardiser = blank_standardiser(NUM_COLUMNS)
    return stack([method.surrogate(model, standardiser) for model in models])


def moved(model, distance):
    return jax.tree.map(lambda leaf: leaf + distance if eqx.is_inexact_array(leaf) else leaf, model)


@pytest.fixture(scope="module")
def questions():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(2, CAPACITY, NUM_COLUMNS)), 0.3 * rng.normal(size=(2, CAPACITY))
    # Not every prior is asked for every run, nor with every context.
    asked = [(0, 0, 0), (0, 1, 3), (1, 0, 0), (1, 0, 5), (2, 1, 3), (2, 1, 1), (1, 0, 8)]
    who, run, seen = np.array(asked).T
    return Questions(who, run, seen, x, y)


def cases():
    # Each of them compiles a program for the comparison.
    marks = {name: [pytest.mark.slow] * (name != "FPacohMap") for name in METHODS}
    return [pytest.param(name, marks=marks[name]) for name in METHODS]


@pytest.mark.parametrize("name", cases())
def test_predictors_of_a_method_equal_its_compiled_surrogates(questions, monkeypatch, name):
    def as_compiled(key, shape):
        return np.asarray(jax.random.normal(jax.random.key(0), shape, jnp.float32).astype(float))

    monkeypatch.setattr(_read, "single_precision_normal", as_compiled)
    # Hyper-posteriors are drawn from in single precision, which compilers round differently.
    rtol = 1e-6 if name == "FPacohVI" else 1e-8
    surrogates = untrained(METHODS[name])
    ours = predictors_of(METHODS[name], surrogates, NUM_COLUMNS)
    assert isinstance(ours, BelievingPredictors)
    found = ours.predict(questions)
    expected = CompiledPredictors(surrogates).predict(questions)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)
    # The control: another prior says something else.
    other = CompiledPredictors(surrogates).predict(
        questions._replace(who=(questions.who + 1) % NUM_PRIORS)
    )
    assert np.abs(found.mean - other.mean).max() > 1e-3


def test_predictors_of_a_method_without_a_form_in_numpy_are_compiled():
    surrogates = untrained(NeuralProcess())
    assert isinstance(predictors_of(NeuralProcess(), surrogates, NUM_COLUMNS), CompiledPredictors)


def test_predictors_say_nothing_finite_for_a_diverged_prior_and_the_others_as_before(questions):
    method = METHODS["FPacohMap"]
    surrogates = untrained(method)
    diverged = jax.tree.map(
        lambda leaf: (
            leaf.at[1].set(jnp.nan) if eqx.is_inexact_array(leaf) else leaf  # the second of three
        ),
        surrogates,
    )
    found = predictors_of(method, diverged, NUM_COLUMNS).predict(questions)
    expected = predictors_of(method, surrogates, NUM_COLUMNS).predict(questions)
    is_lost = questions.who == 1
    for ours, before in zip(found, expected, strict=True):
        assert np.isnan(ours[is_lost]).all()
        np.testing.assert_allclose(ours[~is_lost], before[~is_lost], rtol=1e-12)


def test_conditioned_predictors_are_beliefs_conditioned_on_the_points_seen(questions):
    beliefs = [AveragedBelief(*units) for units in ((0.0, 1.0), (1.0, 0.5), (-2.0, 3.0))]
    found = ConditionedPredictors(beliefs).predict(questions)
    for i, (who, run, seen) in enumerate(
        zip(questions.who, questions.run, questions.seen, strict=True)
    ):
        x, y = questions.x[run], questions.y[run]
        alone = beliefs[who].condition(x[:seen], y[:seen])
        np.testing.assert_allclose(found.mean[i], alone.moments(x).mean, rtol=1e-9)
        np.testing.assert_allclose(found.variance[i], alone.moments(x).variance, rtol=1e-9)
        np.testing.assert_allclose(found.log_density[i], alone.log_density(x, y), rtol=1e-9)
        np.testing.assert_allclose(found.cdf[i], alone.cdf(x, y), rtol=1e-9)


def test_compiled_predictors_answer_more_questions_than_fit_into_a_block():
    """200 questions of which each has an answer of its own."""
    y = np.arange(200.0)[:, None] + np.zeros((1, 2))
    every = np.arange(200)
    questions = Questions(every % 3, every, np.ones(200, int), np.zeros((200, 2, 1)), y)
    found = CompiledPredictors(LastSeen(jnp.array([0.0, 0.25, 0.5]))).predict(questions)
    np.testing.assert_allclose(found.mean[:, 1], every + 0.25 * (every % 3))
