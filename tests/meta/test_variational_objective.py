"""The objective of F-PACOH-VI: against F-PACOH-MAP without variance, and cases in closed form."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from metaprior.data import Real, Space, blank_standardiser
from metaprior.gp import (
    ConstantMean,
    Gaussian,
    GaussianProcess,
    SquaredExponential,
    reference,
)
from metaprior.meta import (
    Domain,
    FPacohBatch,
    FPacohObjective,
    MetaData,
    gp_hyper_prior,
    measurement_sizes,
)
from metaprior.meta._hyper_posterior import (
    HyperPosterior,
    antithetic_normals,
    hyper_posterior,
)
from metaprior.meta._variational_objective import VariationalObjective, mixture_samples
from metaprior.methods._neural_gp import neural_gp
from metaprior.processes import MomentMatching, SpectralStein, StudentTProcess

NUM_TASKS, LENGTH, DIM = 6, 8, 2
JITTER = jnp.asarray(1e-3)
KAPPA = jnp.asarray(0.7)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    mask = np.arange(LENGTH)[None, :] < np.array([8, 8, 5, 1, 8, 3])[:, None]
    return MetaData(
        jnp.asarray(rng.normal(size=(NUM_TASKS, LENGTH, DIM))),
        jnp.asarray(np.where(mask, rng.normal(size=(NUM_TASKS, LENGTH)), 0.0)),
        jnp.asarray(mask),
        jnp.asarray(NUM_TASKS),
        Domain(Space(a=Real(-1, 1), b=Real(-1, 1)), blank_standardiser(DIM)),
    )


@pytest.fixture(scope="module")
def prior():
    """A prior that varies over the domain about as much as the hyper-prior."""
    prior = neural_gp(DIM, 2, key=jr.key(0))
    return eqx.tree_at(lambda p: p.kernel.base.log_lengthscale, prior, jnp.log(0.05))


def size_of(prior):
    return ravel_pytree(eqx.filter(prior, eqx.is_inexact_array))[0].shape[0]


def variational(data, prior, *, num_priors=4, num_functions=10, estimator=None, hyper_prior=None):
    return VariationalObjective(
        data,
        gp_hyper_prior(0.4, 1.5) if hyper_prior is None else hyper_prior,
        KAPPA,
        JITTER,
        measurement_sizes(20, 10, 1),
        3,
        num_priors,
        num_functions,
        size_of(prior),
        SpectralStein() if estimator is None else estimator,
    )


def complexity_gradients(data, prior, *, num_functions, estimator, lengthscale=0.4):
    """Fits, and gradients of the divergence with respect to the prior's parameters, by MAP with
    its hyper-prior's lengthscale 0.4 and by VI without variance, on one batch."""
    objective = variational(
        data,
        prior,
        num_functions=num_functions,
        estimator=estimator,
        hyper_prior=gp_hyper_prior(lengthscale, 1.5),
    )
    hyper_prior = gp_hyper_prior(0.4, 1.5)
    plain = FPacohObjective(
        data,
        hyper_prior,
        KAPPA,
        JITTER,
        objective.sizes,
        objective.batch_size,
    )

    @eqx.filter_jit
    def both(prior):
        batch = objective.draw(key=jr.key(3))
        sets = batch.measured.measurements
        at_sets = jax.vmap(lambda x: reference(hyper_prior.marginal(x), JITTER))(sets)

        def by_map(prior):
            loss, terms = plain.loss(prior, FPacohBatch(batch.measured, at_sets, None, None))
            return loss - terms["fit"], terms["fit"]

        def by_vi(prior):
            loss, terms = objective.loss(hyper_posterior(prior, 0.0), batch)
            return loss - terms["fit"], terms["fit"]

        expected, fit = eqx.filter_grad(by_map, has_aux=True)(prior)
        found, own_fit = eqx.filter_grad(by_vi, has_aux=True)(prior)
        return fit, own_fit, ravel_pytree(expected)[0], ravel_pytree(found)[0]

    return [np.asarray(each) for each in both(prior)]


def relative_error(expected, found):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


@pytest.mark.slow
def test_variational_objective_without_variance_and_score_noise_it_is_the_map_objective(
    data, prior
):
    """All priors are one and the mixture is that Gaussian: with its score known, every gradient
    equals that of F-PACOH-MAP to rounding."""
    fit, own_fit, expected, found = complexity_gradients(
        data, prior, num_functions=4, estimator=MomentMatching()
    )
    np.testing.assert_allclose(own_fit, fit, rtol=1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.slow
def test_variational_objective_without_variance_the_estimated_score_gives_the_map_gradient(
    data, prior
):
    """What the estimator adds to the Gaussian part is noise: 200 functions agree with the closed
    form up to a tenth, and another hyper-prior, as a negative control, does not."""
    estimated = complexity_gradients(data, prior, num_functions=50, estimator=SpectralStein())
    assert relative_error(*estimated[2:]) < 0.1
    other = complexity_gradients(
        data, prior, num_functions=4, estimator=MomentMatching(), lengthscale=2.0
    )
    assert relative_error(*other[2:]) > 0.3


def uncertain_level(mean, log_std) -> HyperPosterior:
    """A GP of which only the constant mean is uncertain: q is Gaussian, K + s^2 everywhere."""
    kernel = SquaredExponential(jnp.asarray(-0.5), jnp.asarray(0.0))
    process = GaussianProcess(ConstantMean(jnp.asarray(0.0)), kernel, jnp.asarray(-2.0))
    # Leaves in order: the mean's value, the kernel's two numbers, the noise.
    everything = hyper_posterior(process, 0.0).log_std.at[0].set(log_std)
    process = eqx.tree_at(lambda p: p.mean.value, process, jnp.asarray(mean))
    return HyperPosterior(process, everything)


def kl_of_level(points, mean, log_std):
    """KL(N(m, K + s^2) || N(0, K_p)), both with jitter, by plain NumPy."""
    apart = ((points[:, None] - points[None]) ** 2).sum(-1)
    noise = float(JITTER) * np.eye(len(points))
    own = np.exp(-0.5 * apart / np.exp(-1.0)) + np.exp(2 * log_std) + noise
    other = 1.5 * np.exp(-0.5 * apart / 0.4**2) + noise
    difference = np.full(len(points), mean)
    return 0.5 * (
        np.trace(np.linalg.solve(other, own))
        + difference @ np.linalg.solve(other, difference)
        - len(points)
        + np.linalg.slogdet(other)[1]
        - np.linalg.slogdet(own)[1]
    )


def mean_gradients(data, num_priors, estimator, num_batches=60):
    """Average gradients of the divergence with respect to mean and log standard deviation of the
    level: estimated, and by finite differences of the exact divergence on the same sets."""
    mean, log_std, step = 0.8, np.log(0.6), 1e-4
    model = uncertain_level(mean, log_std)
    objective = variational(
        data, model.mean, num_priors=num_priors, num_functions=5, estimator=estimator
    )

    def complexity(model, batch):
        loss, terms = objective.loss(model, batch)
        return loss - terms["fit"]

    @eqx.filter_jit
    def gradient(key):
        batch = objective.draw(key=key)
        found = eqx.filter_grad(complexity)(model, batch)
        return jnp.stack([found.mean.mean.value, found.log_std[0]]), batch.measured

    def exact(points):
        by_mean = [kl_of_level(points, mean + h, log_std) for h in (step, -step)]
        by_std = [kl_of_level(points, mean, log_std + h) for h in (step, -step)]
        return -np.diff([by_mean, by_std], axis=1)[:, 0] / (2 * step)

    found, expected = [], []
    for key in jr.split(jr.key(0), num_batches):
        estimate, measured = gradient(key)
        found.append(np.asarray(estimate))
        lengths = np.asarray(measured.tasks.mask).sum(axis=1)
        weights = float(KAPPA) * (1 / np.sqrt(NUM_TASKS) + 1 / (NUM_TASKS * lengths))
        each = [exact(points) for points in np.asarray(measured.measurements)]
        expected.append(np.mean(weights[:, None] * np.array(each), axis=0))
    return np.mean(found, axis=0), np.mean(expected, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [SpectralStein(), MomentMatching()])
def test_variational_objective_gradient_of_the_divergence_against_a_case_in_closed_form(
    data, estimator
):
    """Forty priors stand for infinitely many: the logarithm of the determinant of their covariance
    is biased, by less than a tenth in the gradient. Both derivatives are far from zero."""
    found, expected = mean_gradients(data, 40, estimator)
    np.testing.assert_allclose(found, expected, rtol=0.1)
    assert np.abs(expected).min() > 0.1
    few, _ = mean_gradients(data, 4, estimator)
    assert abs(few[1] - expected[1]) > 2 * abs(found[1] - expected[1])


def test_variational_objective_fit_is_the_mean_over_priors(data, prior):
    objective = variational(data, prior, num_priors=3)
    batch = eqx.filter_jit(objective.draw)(key=jr.key(1))
    model = hyper_posterior(prior, 0.1)

    @eqx.filter_jit
    def fits(model):
        each = eqx.filter_vmap(lambda p: batch.measured.fit_and_marginals(p)[0])
        return objective.loss(model, batch)[1]["fit"], each(model.at(batch.prior_noise))

    found, each = fits(model)
    assert each.shape == (3, 3)
    np.testing.assert_allclose(found, np.mean(each), rtol=1e-12)
    assert np.std(each.mean(axis=1)) > 0


def test_variational_objective_moments_of_a_mixture_follow_from_its_samples():
    """Law of total variance, against two million plain draws: three standard errors."""
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(3, 2, 2))
    marginals = Gaussian(
        jnp.asarray(rng.normal(size=(3, 2))), jnp.asarray(roots @ roots.transpose(0, 2, 1))
    )
    num = 50_000
    noise = jnp.asarray(rng.normal(size=(3, num, 2)))
    samples = jax.jit(mixture_samples)(marginals, noise, jnp.asarray(0.1))
    values = np.asarray(samples.values)
    assert samples.moments is not None
    scale = np.sqrt(np.diag(samples.moments.covariance))
    error = (values.mean(0) - np.asarray(samples.moments.mean)) / scale
    np.testing.assert_allclose(error, 0.0, atol=3 / np.sqrt(3 * num))
    error = (np.cov(values.T) - np.asarray(samples.moments.covariance)) / np.outer(scale, scale)
    np.testing.assert_allclose(error, 0.0, atol=3 * 2 / np.sqrt(3 * num))


def test_antithetic_normals_cancel_and_are_normal():
    noise = np.asarray(antithetic_normals(10, 4000, key=jr.key(0)))
    np.testing.assert_array_equal(noise[:5], -noise[5:])
    assert antithetic_normals(5, 3, key=jr.key(0)).shape == (5, 3)
    np.testing.assert_allclose(noise[:5].std(), 1.0, atol=4 / np.sqrt(2 * 5 * 4000))


@pytest.mark.slow
def test_variational_objective_hyper_prior_without_gaussian_marginals_is_followed_too(data, prior):
    """With many degrees of freedom a Student-t process is its Gaussian process, and so is the
    gradient; with 2.1 it is another."""
    gaussian = gp_hyper_prior(0.4, 1.5)

    def gradient(hyper_prior):
        objective = variational(data, prior, num_functions=100, hyper_prior=hyper_prior)
        model = hyper_posterior(prior, 1e-3)

        def complexity(model, batch):
            loss, terms = objective.loss(model, batch)
            return loss - terms["fit"]

        @eqx.filter_jit
        def of(model):
            batch = objective.draw(key=jr.key(2))
            return eqx.filter_grad(complexity)(model, batch)

        return np.asarray(ravel_pytree(of(model).mean)[0])

    expected = gradient(gaussian)
    assert relative_error(expected, gradient(StudentTProcess(gaussian, 1e6))) < 0.1
    assert relative_error(expected, gradient(StudentTProcess(gaussian, 2.1))) > 0.15
