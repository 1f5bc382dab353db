r"""Our objective and its gradients against GPyTorch's, task by task with automatic gradients.

Ours adds $10^{-8}$ to the covariance of the likelihood and the measurement variance to those of the
divergence; the reference adds one jitter to all. With $\sigma^2_{ref} = \sigma^2 + 10^{-8} -
\epsilon$ as its noise, and $\epsilon$ the measurement variance, the two are the same function.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

pytestmark = pytest.mark.oracle

pytest.importorskip("torch", reason="`make oracle` installs torch")

from benchmarks._gpytorch_reference import ReferenceFPacoh  # noqa: E402
from metaprior.data import Real, Space, Tasks, fit_standardiser  # noqa: E402
from metaprior.gp._linalg import JITTER  # noqa: E402
from metaprior.meta import (  # noqa: E402
    FPacohObjective,
    gp_hyper_prior,
    measurement_sizes,
    meta_data,
)
from metaprior.methods import FPacohMap  # noqa: E402

LENGTHS = (1, 9, 4, 13, 6)
EPSILON, NOISE = 1e-4, 0.03
KAPPA, LENGTHSCALE, VARIANCE = 0.3, 0.4, 1.3


def random_objective(d):
    rng = np.random.default_rng(d)
    space = Space(**{f"x{j}": Real(0.0, 1.0) for j in range(d)})
    x = [rng.uniform(size=(m, d)) for m in LENGTHS]
    y = [np.sin(4 * a).sum(axis=1) + 0.1 * rng.normal(size=len(a)) for a in x]
    tasks = Tasks.from_runs(list(zip(x, y, strict=True)), space=space)
    return FPacohObjective(
        meta_data(tasks, fit_standardiser(tasks.x, tasks.y, tasks.mask)),
        gp_hyper_prior(LENGTHSCALE, VARIANCE),
        jnp.asarray(KAPPA),
        jnp.asarray(EPSILON),
        measurement_sizes(10, 4, min(LENGTHS)),
        len(LENGTHS),
    )


def random_prior(d):
    """Random networks and scalars away from their neutral values, so that no factor is one."""
    process = FPacohMap(feature_dim=3).blank_surrogate(d).process
    scalars = (-0.7, 0.4, np.log(NOISE))
    return eqx.tree_at(
        lambda p: (
            p.plain.kernel.base.log_lengthscale,
            p.plain.kernel.base.log_variance,
            p.plain.log_noise_variance,
        ),
        process,
        tuple(jnp.asarray(value) for value in scalars),
    )


def as_parameters(process):
    """Our prior, or a gradient of it, as the dictionary that the reference takes."""
    process = process.plain
    mean, features = process.mean.network.layers, process.kernel.features.layers
    return {
        "mean_weights": [np.array(layer.weight) for layer in mean],
        "mean_biases": [np.array(layer.bias) for layer in mean],
        "feature_weights": [np.array(layer.weight) for layer in features],
        "feature_biases": [np.array(layer.bias) for layer in features],
        "log_variance": np.array(process.kernel.base.log_variance),
        "log_lengthscale": np.array(process.kernel.base.log_lengthscale),
        "log_noise_variance": np.array(process.log_noise_variance),
    }


def as_lists(batch):
    """The batch's tasks and measurement sets without padding."""
    masks = np.asarray(batch.measured.tasks.mask)
    return (
        [np.array(x)[mask] for x, mask in zip(batch.measured.tasks.x, masks, strict=True)],
        [np.array(y)[mask] for y, mask in zip(batch.measured.tasks.y, masks, strict=True)],
        [
            np.array(p)[np.asarray(r)]
            for p, r in zip(batch.measured.points, batch.measured.rows, strict=True)
        ],
    )


@pytest.mark.parametrize("d", [2, 6])
def test_fpacoh_objective_and_gradients_match_gpytorch(d):
    objective, process = random_objective(d), random_prior(d)
    batch = eqx.filter_jit(objective.draw)(key=jr.key(d))
    x, y, points = as_lists(batch)
    assert sorted(map(len, y)) == sorted(LENGTHS) and {len(p) for p in points} == {10}

    @eqx.filter_jit
    def ours(process):
        params, static = eqx.partition(process, eqx.is_inexact_array)
        return jax.value_and_grad(
            lambda params: objective.loss(eqx.combine(params, static), batch), has_aux=True
        )(params)

    (value, terms), gradient = ours(process)
    noise_there = NOISE + JITTER - EPSILON
    parameters = as_parameters(process) | {"log_noise_variance": np.log(noise_there)}
    reference = ReferenceFPacoh(parameters)
    settings = dict(
        num_tasks=len(LENGTHS),
        hyper_lengthscale=LENGTHSCALE,
        hyper_variance=VARIANCE,
        jitter=EPSILON,
    )
    np.testing.assert_allclose(
        value, reference.objective(x, y, points, kappa=KAPPA, **settings), rtol=1e-6
    )
    np.testing.assert_allclose(
        terms["fit"], reference.objective(x, y, points, kappa=0.0, **settings), rtol=1e-6
    )
    expected = reference.gradients(x, y, points, kappa=KAPPA, **settings)
    # Both are derivatives by the logarithm of a noise, and the two noises differ by a constant.
    expected["log_noise_variance"] = expected["log_noise_variance"] * NOISE / noise_there
    got = as_parameters(gradient)
    assert got.keys() == expected.keys()
    for name, slopes in expected.items():
        mine = got[name] if isinstance(slopes, list) else [got[name]]
        for a, b in zip(mine, slopes if isinstance(slopes, list) else [slopes], strict=True):
            # Shifting all features changes nothing: the slope of their last bias is rounding.
            atol = max(1e-6 * np.abs(b).max(), 1e-12)
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=atol, err_msg=name)


def test_fpacoh_objective_test_can_fail():
    """Negative control: dividing the likelihood by the length twice, as published code does."""
    objective, process = random_objective(2), random_prior(2)
    batch = eqx.filter_jit(objective.draw)(key=jr.key(0))
    x, y, points = as_lists(batch)
    value, terms = eqx.filter_jit(objective.loss)(process, batch)
    reference = ReferenceFPacoh(as_parameters(process))
    fits = [
        reference.objective([a], [b], [p], len(y), 0.0, LENGTHSCALE, VARIANCE, JITTER)
        for a, b, p in zip(x, y, points, strict=True)
    ]
    np.testing.assert_allclose(np.mean(fits) + terms["complexity"], value, rtol=1e-6)
    twice = np.mean([fit / len(b) for fit, b in zip(fits, y, strict=True)])
    assert abs(twice + terms["complexity"] - value) > 1e-2
