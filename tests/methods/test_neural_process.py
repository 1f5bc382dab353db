"""The neural process: its objective worked in NumPy, what it learns, and whether it is honest."""

from dataclasses import fields, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads
from scipy import integrate, stats

import metaprior as mp
from metaprior.data import Run, blank_standardiser, empty_run, run_of
from metaprior.meta import TaskBatch, meta_data
from metaprior.methods._neural_process import SEARCH_RANGES, NeuralProcess, latent_nodes
from metaprior.methods._neural_process_model import (
    Latent,
    SplitBatch,
    choose_context,
    latent_divergence,
)

# Compiled networks and fits: with the slow tests, so that the default suite stays short.
pytestmark = pytest.mark.slow

# Small, and of one size wherever it is trained: the training loop compiles once.
SMALL = NeuralProcess(num_steps=40, width=32, latent_dim=4)
LEVELS = np.array([0.5, 0.8, 0.95])
CAPACITY = 16


def sinusoids(num_tasks, num_points, seed):
    """Runs on random sinusoids of one frequency, observed with noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(num_tasks, num_points, 1))
    amplitude, phase = rng.uniform(0.5, 2.0, (num_tasks, 1)), rng.uniform(0, np.pi, (num_tasks, 1))
    y = 10 + 3 * amplitude * np.sin(6 * x[..., 0] + phase)
    return x, y + 0.3 * rng.normal(size=y.shape)


@pytest.fixture(scope="module")
def sinusoid_tasks():
    x, y = sinusoids(300, 12, seed=0)
    space = mp.Space(x=mp.Real(0.0, 1.0))
    return mp.Tasks.from_runs(list(zip(x, y, strict=True)), space=space)


@pytest.fixture(scope="module")
def trained(sinusoid_tasks):
    return replace(SMALL, num_steps=2000).meta_train(sinusoid_tasks, key=jr.key(0))


@pytest.fixture(scope="module")
def untrained():
    """Random networks over two inputs: rules that hold for any weights."""
    return SMALL.blank_surrogate(2)


@eqx.filter_jit
def predict(surrogate, run, points):
    return jax.vmap(surrogate.condition(run).moments)(points)


@eqx.filter_jit
def sample(surrogate, run, points, num, key):
    return surrogate.condition(run).sample(points, num, key=key)


@eqx.filter_jit
def along_path(surrogate, run, points, key):
    path = surrogate.condition(run).path(points, key=key)
    return jnp.stack([path(point) for point in points])


# Training objective


def objective_of(method, mask):
    """The objective over tasks of two inputs, all zeros, of which `mask` says how long they are."""
    runs = [(np.zeros((m, 2)), np.zeros(m)) for m in mask.sum(axis=1)]
    space = mp.Space(a=mp.Real(0.0, 1.0), b=mp.Real(0.0, 1.0))
    tasks = mp.Tasks.from_runs(runs, space=space)
    return method.objective(tasks, meta_data(tasks, blank_standardiser(2)))


def numpy_network(network, inputs):
    for layer in network.layers[:-1]:
        inputs = np.tanh(inputs @ np.asarray(layer.weight).T + np.asarray(layer.bias))
    last = network.layers[-1]
    return inputs @ np.asarray(last.weight).T + np.asarray(last.bias)


def numpy_latent(model, x, y):
    """Mean and standard deviation of the latent variable after the observations `x`, `y`."""
    if len(y) == 0:
        summary = np.asarray(model.empty)
    else:
        summary = numpy_network(model.encoder, np.column_stack([x, y])).mean(axis=0)
    mean, raw = np.split(numpy_network(model.latent, summary), 2)
    return mean, 0.1 + 0.9 / (1 + np.exp(-raw))


def numpy_terms(model, x, y, context, noise, min_std):
    """Fit and divergence of one task without padding."""
    mean, std = numpy_latent(model, x, y)
    z = np.broadcast_to(mean + std * noise, (len(y), len(mean)))
    predicted = numpy_network(model.decoder, np.column_stack([x, z]))
    scale = min_std + (1 - min_std) * np.log1p(np.exp(predicted[:, 1]))
    fit = -stats.norm.logpdf(y, predicted[:, 0], scale).mean()
    prior_mean, prior_std = numpy_latent(model, x[context], y[context])
    # Expected logarithm of the ratio of densities, under the first.
    kl = 0.5 * np.log(prior_std**2) - 0.5 * np.log(std**2) - 0.5
    kl = kl + (std**2 + (mean - prior_mean) ** 2) / (2 * prior_std**2)
    return fit, kl.sum() / len(y)


def test_neural_process_objective_is_the_bound_worked_in_numpy():
    """Two tasks of 5 and 1 points in a buffer of 6, with contexts of 2 and of no points."""
    rng = np.random.default_rng(0)
    model = SMALL.initial(2, key=jr.key(1))
    model = eqx.tree_at(lambda m: m.empty, model, jnp.asarray(rng.normal(size=32)))
    lengths, contexts = (5, 1), ([1, 4], [])
    x, y = 3 * rng.normal(size=(2, 6, 2)), rng.normal(size=(2, 6))
    noise = rng.normal(size=(2, 4))
    mask = np.arange(6) < np.array(lengths)[:, None]
    context = np.zeros((2, 6), bool)
    context[0, contexts[0]] = True
    batch = SplitBatch(
        TaskBatch(jnp.asarray(x), jnp.asarray(y), jnp.asarray(mask)),
        jnp.asarray(context),
        jnp.asarray(noise),
    )
    objective = objective_of(replace(SMALL, min_std=0.2), np.ones((2, 6), bool))
    loss = eqx.filter_jit(lambda model: objective.loss(model, batch))
    value, terms = loss(model)
    expected = np.mean(
        [
            numpy_terms(model, x[i, :m], y[i, :m], contexts[i], noise[i], 0.2)
            for i, m in enumerate(lengths)
        ],
        axis=0,
    )
    np.testing.assert_allclose([terms["fit"], terms["complexity"]], expected, rtol=1e-10)
    np.testing.assert_allclose(value, expected.sum(), rtol=1e-10)
    params, static = eqx.partition(model, eqx.is_inexact_array)
    check_grads(
        lambda params: loss(eqx.combine(params, static))[0], (params,), 1, ["rev"], rtol=1e-4
    )


def test_neural_process_divergence_of_latents_is_the_integral():
    def integrand(z):
        log_q, log_p = stats.norm.logpdf(z, 0.3, 0.4), stats.norm.logpdf(z, -0.5, 0.9)
        return np.exp(log_q) * (log_q - log_p)

    one = integrate.quad(integrand, -5, 5)[0]
    got = latent_divergence(
        Latent(jnp.array([0.3, 1.0]), jnp.array([0.4, 0.2])),
        Latent(jnp.array([-0.5, 1.0]), jnp.array([0.9, 0.2])),
    )
    np.testing.assert_allclose(got, one, rtol=1e-8)


contexts_of = jax.jit(jax.vmap(choose_context, in_axes=(None, 0, 0)))


@pytest.mark.parametrize("length", [1, 2, 6])
def test_neural_process_contexts_are_subsets_of_every_size_but_the_whole(length):
    rng = np.random.default_rng(length)
    mask = jnp.arange(8) < length
    chosen = np.asarray(contexts_of(mask, rng.uniform(size=6000), rng.uniform(size=(6000, 8))))
    assert not chosen[:, length:].any()
    sizes = np.bincount(chosen.sum(axis=1), minlength=length)
    assert len(sizes) == length
    # Uniform sizes, and every row as often as any other.
    assert stats.chisquare(sizes).pvalue > 1e-3 if length > 1 else sizes[0] == 6000
    rows = chosen[:, :length].mean(axis=0)
    np.testing.assert_allclose(rows, (length - 1) / 2 / length, atol=4 * 0.5 / np.sqrt(6000))


def test_neural_process_step_draws_contexts_of_its_tasks_and_fresh_noise():
    """Tasks of 3 and 8 points in a batch: contexts of at most 2 and 7, different every time."""
    objective = objective_of(SMALL, np.arange(8) < np.array([[3], [8]]))
    keys = jr.split(jr.key(0), 300)
    batch = jax.jit(jax.vmap(lambda key: objective.draw(key=key)))(keys)
    context, mask = np.asarray(batch.context), np.asarray(batch.tasks.mask)
    assert not (context & ~mask).any()
    sizes = context.sum(axis=2)
    for length in (3, 8):
        assert set(sizes[mask.sum(axis=2) == length]) == set(range(length))
    noise = np.asarray(batch.noise).reshape(-1)
    assert len(noise) == 300 * 2 * 4 and stats.kstest(noise, "norm").pvalue > 1e-3


# Conditioning: rules that hold for any weights


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**31 - 1), length=st.integers(0, CAPACITY))
def test_neural_process_neither_order_nor_padding_matters(untrained, seed, length):
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(size=(CAPACITY, 2)), rng.normal(size=CAPACITY)
    order = np.concatenate([rng.permutation(length), np.arange(length, CAPACITY)])
    other_x, other_y = x[order], y[order]
    other_x[length:], other_y[length:] = 1e3 * rng.normal(size=2), 1e3
    points = jnp.asarray(rng.uniform(size=(3, 2)))
    for field, other in zip(
        predict(untrained, Run(jnp.asarray(x), jnp.asarray(y), jnp.asarray(length)), points),
        predict(
            untrained, Run(jnp.asarray(other_x), jnp.asarray(other_y), jnp.asarray(length)), points
        ),
        strict=True,
    ):
        np.testing.assert_allclose(other, field, rtol=1e-9)


def test_neural_process_every_observation_counts(untrained):
    rng = np.random.default_rng(0)
    x, y, points = rng.uniform(size=(4, 2)), rng.normal(size=4), jnp.asarray([[0.3, 0.4]])
    means = [predict(untrained, run_of(x[:m], y[:m]), points).mean[0] for m in range(5)]
    assert (np.abs(np.diff(np.sort(means))) > 1e-9).all()


def test_neural_process_posterior_is_in_the_units_of_the_run(untrained):
    rng = np.random.default_rng(0)
    x, y, points = rng.uniform(size=(5, 2)), rng.normal(size=5), jnp.asarray([[0.3, 0.4]])
    scaled = eqx.tree_at(
        lambda s: (s.standardiser.y_mean, s.standardiser.y_std),
        untrained,
        (jnp.asarray(100.0), jnp.asarray(7.0)),
    )
    plain, got = (
        predict(untrained, run_of(x, y), points),
        predict(scaled, run_of(x, 100 + 7 * y), points),
    )
    np.testing.assert_allclose(got.mean, 100 + 7 * plain.mean, rtol=1e-10)
    np.testing.assert_allclose(got.function_variance, 49 * plain.function_variance, rtol=1e-8)
    np.testing.assert_allclose(got.noise_variance, 49 * plain.noise_variance, rtol=1e-10)
    draws = [
        sample(surrogate, run, points, 3, jr.key(0))
        for surrogate, run in ((untrained, run_of(x, y)), (scaled, run_of(x, 100 + 7 * y)))
    ]
    np.testing.assert_allclose(draws[1], 100 + 7 * draws[0], rtol=1e-10)


def test_neural_process_predictions_average_over_the_latent_variable(untrained):
    """With as many nodes as samples, moments and samples of the function agree."""
    num = 4000
    fine = eqx.tree_at(lambda s: s.nodes, untrained, latent_nodes(num, 4))
    points = jnp.array([[0.2, 0.9], [0.7, 0.1]])
    run = run_of(np.full((1, 2), 0.5), np.ones(1))
    samples = np.asarray(sample(fine, run, points, num, jr.key(0)))
    moments = predict(fine, run, points)
    error = samples.std(axis=0) / np.sqrt(num)
    assert (np.abs(samples.mean(axis=0) - moments.mean) < 4 * error).all()
    np.testing.assert_allclose(samples.var(axis=0), moments.function_variance, rtol=0.12)
    # Of one function at two points, not of two functions.
    values = along_path(fine, run, points, jr.split(jr.key(0), num)[5])
    np.testing.assert_allclose(values, samples[5], rtol=1e-10)


def test_neural_process_nodes_have_the_moments_of_a_standard_normal():
    nodes = np.asarray(latent_nodes(32, 5))
    np.testing.assert_allclose(nodes.mean(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(nodes.var(axis=0), 1.0, rtol=1e-12)
    assert len(np.unique(nodes, axis=0)) == 32


# What training gives


def test_neural_process_learns_to_identify_the_task(trained):
    """Error on new sinusoids falls with every few points, far below that of the overall mean."""
    x, y = sinusoids(200, 12, seed=1)

    @jax.jit
    def means(x, y, length):
        return jax.vmap(lambda x, y: predict(trained, Run(x[:8], y[:8], length), x[8:]).mean)(x, y)

    errors = []
    for length in (0, 1, 3, 8):
        mean = means(jnp.asarray(x), jnp.asarray(y), jnp.asarray(length))
        errors.append(np.sqrt(np.mean((mean - y[:, 8:]) ** 2)))
    assert (np.diff(errors) < 0).all()
    assert errors[-1] < 0.4 * y.std()


@pytest.mark.parametrize("length", [0, 1, 4, 8])
def test_neural_process_intervals_cover_unless_the_context_is_foreign(trained, length):
    x, y = sinusoids(500, 9, seed=2)

    @jax.jit
    @jax.vmap
    def cdf(x, context, truth):
        run = Run(x[:-1], context[:-1], jnp.asarray(length))
        return trained.condition(run).cdf(x[-1], truth)

    honest = mp.metrics.coverage(np.asarray(cdf(x, y, y[:, -1])), LEVELS)
    foreign = mp.metrics.coverage(np.asarray(cdf(x, np.roll(y, 1, axis=0), y[:, -1])), LEVELS)
    # A neural process has no guarantee: its intervals are roughly right, not exact.
    assert (np.abs(honest - LEVELS) < 0.2).all()
    if length >= 4:
        assert (foreign < LEVELS - 0.2).all()


def test_neural_process_gradients_exist_for_an_acquisition_to_climb(trained):
    @jax.jit
    def bound(x):
        moments = trained.condition(empty_run(CAPACITY, 1)).moments(x)
        return moments.mean + 2 * jnp.sqrt(moments.variance)

    check_grads(bound, (jnp.array([0.37]),), 1, ["rev"], rtol=1e-4)


@pytest.mark.parametrize("num", [0, 1, 7])
def test_neural_process_odd_number_of_latents_is_refused(num):
    with pytest.raises(ValueError, match=rf"^`num_latents` is {num}; give an even number[^.]*\.$"):
        NeuralProcess(num_latents=num)


def test_neural_process_search_covers_the_defaults():
    names = {field.name for field in fields(NeuralProcess)}
    for name, (kind, *values) in SEARCH_RANGES.items():
        default = getattr(NeuralProcess(), name)
        inside = (
            values[0] <= default <= values[1] if kind == "log-uniform" else default in values[0]
        )
        assert name in names and inside
