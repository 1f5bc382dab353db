"""Objectives and gradients of PACOH-MAP and ABLR against torch, task by task, by autograd."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

pytestmark = pytest.mark.oracle

pytest.importorskip("torch", reason="`make oracle` installs torch")

from benchmarks._torch_methods_reference import (  # noqa: E402
    ReferenceAblr,
    ReferencePacoh,
    as_batch,
    meta_train,
    random_ablr_parameters,
)
from metaprior.data import Real, Space, Tasks, fit_standardiser  # noqa: E402
from metaprior.gp._linalg import JITTER  # noqa: E402
from metaprior.meta import meta_data  # noqa: E402
from metaprior.methods import ABLR, PacohMap  # noqa: E402

# Different lengths, so that their harmonic and arithmetic means differ, and a task with one point.
LENGTHS = (1, 9, 4, 13, 6)
KAPPA, HYPER_PRIOR_STD, NOISE_VARIANCE = 0.3, 1.7, 0.03


def random_runs(lengths, d=2):
    rng = np.random.default_rng(d)
    x = [rng.uniform(size=(m, d)) for m in lengths]
    return x, [np.sin(4 * a).sum(axis=1) + 0.1 * rng.normal(size=len(a)) for a in x]


def random_objective(method, lengths):
    """The objective of `method` on random runs, and a batch that is not all of them."""
    x, y = random_runs(lengths)
    space = Space(a=Real(0.0, 1.0), b=Real(0.0, 1.0))
    tasks = Tasks.from_runs(list(zip(x, y, strict=True)), space=space)
    data = meta_data(tasks, fit_standardiser(tasks.x, tasks.y, tasks.mask))
    objective = method.objective(tasks, data)
    batch = eqx.filter_jit(objective.draw)(key=jr.key(4))
    assert batch.y.shape[0] == method.batch_size < len(lengths)
    return objective, batch


def as_torch(batch):
    """The batch's tasks without padding."""
    masks = np.asarray(batch.mask)
    x = [np.array(x)[mask] for x, mask in zip(batch.x, masks, strict=True)]
    return as_batch(x, [np.array(y)[mask] for y, mask in zip(batch.y, masks, strict=True)])


@eqx.filter_jit
def value_and_gradient(objective, model, batch):
    params, static = eqx.partition(model, eqx.is_inexact_array)
    return jax.value_and_grad(lambda params: objective.loss(eqx.combine(params, static), batch)[0])(
        params
    )


def layers_of(network):
    """`(weight, bias)` of each layer of one of our networks, or of a gradient of it."""
    return [(np.array(layer.weight), np.array(layer.bias)) for layer in network.layers]


def slopes_of(network):
    """The same of a torch network after `backward`."""
    return [(layer.weight.grad.numpy(), layer.bias.grad.numpy()) for layer in network[::2]]


def assert_layers_close(got, expected):
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            atol = max(1e-6 * np.abs(b).max(), 1e-12)
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=atol)


def random_process():
    """A random prior with scalars away from their neutral values, so that no factor is one."""
    process = PacohMap(feature_dim=3).blank_surrogate(2).process
    return eqx.tree_at(
        lambda p: (p.kernel.base.log_lengthscale, p.kernel.base.log_variance, p.log_noise_variance),
        process,
        (jnp.asarray(-0.7), jnp.asarray(0.4), jnp.log(NOISE_VARIANCE)),
    )


def reference_pacoh(process, **changes):
    mean, features = layers_of(process.mean.network), layers_of(process.kernel.features)
    parameters = {
        "mean_weights": [weight for weight, _ in mean],
        "mean_biases": [bias for _, bias in mean],
        "feature_weights": [weight for weight, _ in features],
        "feature_biases": [bias for _, bias in features],
        "log_variance": np.array(process.kernel.base.log_variance),
        "log_lengthscale": np.array(process.kernel.base.log_lengthscale),
        "log_noise_variance": np.array(process.log_noise_variance),
    }
    settings = dict(
        lengths=LENGTHS, kappa=KAPPA, hyper_prior_variance=HYPER_PRIOR_STD**2, jitter=JITTER
    )
    return ReferencePacoh(parameters, **(settings | changes))


def test_pacoh_objective_and_gradients_match_gpytorch():
    method = PacohMap(
        kappa=KAPPA, hyper_prior_std=HYPER_PRIOR_STD, feature_dim=3, batch_size=len(LENGTHS) - 1
    )
    objective, batch = random_objective(method, LENGTHS)
    process = random_process()
    value, gradient = value_and_gradient(objective, process, batch)
    reference = reference_pacoh(process)
    loss = reference.loss(as_torch(batch))
    np.testing.assert_allclose(value, loss.item(), rtol=1e-6)

    loss.backward()
    prior = reference.prior
    assert_layers_close(layers_of(gradient.mean.network), slopes_of(prior.mean_module.network))
    assert_layers_close(layers_of(gradient.kernel.features), slopes_of(prior.features))
    for ours, theirs in [
        (gradient.kernel.base.log_variance, prior.covar_module.raw_outputscale),
        (gradient.kernel.base.log_lengthscale, prior.covar_module.base_kernel.raw_lengthscale),
        (gradient.log_noise_variance, reference.likelihood.noise_covar.raw_noise),
    ]:
        np.testing.assert_allclose(ours, theirs.grad.item(), rtol=1e-6)


def test_pacoh_objective_test_can_fail():
    """Negative control: neither a longer task nor a wider hyper-prior leaves the value alone."""
    _, batch = random_objective(PacohMap(batch_size=4), LENGTHS)
    process, tasks = random_process(), as_torch(batch)
    value = reference_pacoh(process).loss(tasks).item()
    for changes in ({"lengths": (2, *LENGTHS[1:])}, {"hyper_prior_variance": HYPER_PRIOR_STD}):
        assert abs(reference_pacoh(process, **changes).loss(tasks).item() / value - 1) > 1e-3


# All tasks shorter than the 32 features, or padded to more than them: ours factors in the smaller
# space of the batch, the reference in that of each task.
@pytest.mark.parametrize("lengths", [LENGTHS, (40, 9, 37, 33)], ids=["short", "long"])
def test_ablr_objective_and_gradients_match_torch(lengths):
    objective, batch = random_objective(ABLR(batch_size=len(lengths) - 1), lengths)
    model = eqx.tree_at(
        lambda m: (m.log_weight_precision, m.log_noise_precision),
        ABLR().blank_surrogate(2).model,
        (jnp.asarray(0.6), -jnp.log(NOISE_VARIANCE)),
    )
    value, gradient = value_and_gradient(objective, model, batch)
    layers = layers_of(model.network)
    parameters = {
        "weights": [weight for weight, _ in layers],
        "biases": [bias for _, bias in layers],
        "log_weight_precision": np.array(model.log_weight_precision),
        "log_noise_precision": np.array(model.log_noise_precision),
    }
    reference = ReferenceAblr(parameters, lengths, jitter=JITTER)
    loss = reference.loss(as_torch(batch))
    np.testing.assert_allclose(value, loss.item(), rtol=1e-6)

    loss.backward()
    assert_layers_close(layers_of(gradient.network), slopes_of(reference.features))
    for name in ("log_weight_precision", "log_noise_precision"):
        theirs = getattr(reference, name).grad.item()
        np.testing.assert_allclose(getattr(gradient, name), theirs, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("name", ["pacoh", "ablr"])
def test_torch_references_learn(name):
    """An opponent in a timing should do what it is timed for."""
    x, y = random_runs((12,) * 4)
    lengths = [len(run) for run in y]
    if name == "ablr":
        model = ReferenceAblr(random_ablr_parameters(2, seed=0), lengths, jitter=JITTER)
    else:
        model = reference_pacoh(random_process(), lengths=lengths)
    trained = meta_train(model, x, y, num_steps=25, batch_size=4, seed=0)
    assert trained.losses.shape == (25,)
    assert trained.losses[-1] < trained.losses[0] - 0.1
