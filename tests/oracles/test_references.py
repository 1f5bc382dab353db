"""The torch references against formulas in numpy and scipy: an oracle must itself be checked."""

import math

import numpy as np
import pytest
import scipy.stats
from scipy.spatial.distance import cdist

pytestmark = pytest.mark.oracle

pytest.importorskip("torch", reason="`make oracle` installs torch")

from benchmarks._botorch_reference import ask  # noqa: E402
from benchmarks._gpytorch_reference import ReferenceFPacoh, measurement_set  # noqa: E402

SETTINGS = dict(num_tasks=7, kappa=0.3, hyper_lengthscale=0.4, hyper_variance=1.3, jitter=1e-4)


def numpy_network(weights, biases, x):
    hidden = x
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        hidden = np.tanh(hidden @ weight.T + bias)
    return hidden @ weights[-1].T + biases[-1]


def numpy_marginal(parameters, x):
    mean = numpy_network(parameters["mean_weights"], parameters["mean_biases"], x)[:, 0]
    features = numpy_network(parameters["feature_weights"], parameters["feature_biases"], x)
    lengthscale = np.exp(parameters["log_lengthscale"])
    distance = cdist(features, features, "sqeuclidean")
    return mean, np.exp(parameters["log_variance"]) * np.exp(-distance / (2 * lengthscale**2))


def numpy_objective(
    parameters,
    x_list,
    y_list,
    points_list,
    *,
    num_tasks,
    kappa,
    hyper_lengthscale,
    hyper_variance,
    jitter,
):
    terms = []
    for x, y, points in zip(x_list, y_list, points_list, strict=True):
        mean, kernel = numpy_marginal(parameters, x)
        noise_variance = np.exp(parameters["log_noise_variance"])
        covariance = kernel + (noise_variance + jitter) * np.eye(len(y))
        log_likelihood = scipy.stats.multivariate_normal(mean, covariance).logpdf(y)

        mean, kernel = numpy_marginal(parameters, points)
        q = kernel + jitter * np.eye(len(points))
        distance = cdist(points, points, "sqeuclidean")
        p = hyper_variance * np.exp(-distance / (2 * hyper_lengthscale**2))
        p = p + jitter * np.eye(len(points))
        log_ratio = np.linalg.slogdet(p)[1] - np.linalg.slogdet(q)[1]
        trace, shift = np.trace(np.linalg.solve(p, q)), mean @ np.linalg.solve(p, mean)
        kl = 0.5 * (trace + shift - len(points) + log_ratio)

        weight = kappa * (1 / np.sqrt(num_tasks) + 1 / (num_tasks * len(y)))
        terms.append(-log_likelihood / len(y) + weight * kl)
    return np.mean(terms)


def random_tasks(d, lengths, seed=0):
    rng = np.random.default_rng(seed)
    x = [rng.uniform(size=(length, d)) for length in lengths]
    y = [np.sin(4 * a).sum(axis=1) + 0.1 * rng.normal(size=len(a)) for a in x]
    points = [rng.uniform(size=(6, d)) for _ in x]
    return x, y, points


def generic_parameters(d, seed=0):
    """Random networks and scalars away from their neutral values, so that no factor is one."""
    parameters = ReferenceFPacoh.random(d, seed=seed, feature_dim=3).parameters()
    return parameters | {
        "log_variance": np.array(0.4),
        "log_lengthscale": np.array(-0.7),
        "log_noise_variance": np.array(-1.9),
    }


def as_list(value):
    """The arrays of one entry of a parameter dictionary."""
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("lengths", [(1,), (4, 9, 1)])
def test_reference_objective_matches_numpy(d, lengths):
    parameters, tasks = generic_parameters(d), random_tasks(d, lengths)
    expected = numpy_objective(parameters, *tasks, **SETTINGS)
    got = ReferenceFPacoh(parameters).objective(*tasks, **SETTINGS)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_reference_objective_matches_a_case_worked_by_hand():
    """Networks without weights: the mean is its last bias, b, and the kernel is its variance, v.

    One observation y and one measurement point leave scalar Gaussians:
    ln Z = ln N(y; b, v + noise + jitter), KL = ln(s_p / s_q) + (s_q^2 + b^2) / (2 s_p^2) - 1/2.
    """
    parameters = ReferenceFPacoh.random(1, seed=0).parameters()
    for key in ("mean_weights", "mean_biases", "feature_weights", "feature_biases"):
        parameters[key] = [np.zeros_like(array) for array in parameters[key]]
    parameters["mean_biases"][-1] = np.array([0.5])
    parameters |= {
        "log_variance": math.log(2.0),
        "log_lengthscale": 0.3,
        "log_noise_variance": math.log(0.25),
    }
    got = ReferenceFPacoh(parameters).objective(
        [np.array([[0.2]])],
        [np.array([1.5])],
        [np.array([[0.7]])],
        num_tasks=4,
        kappa=0.1,
        hyper_lengthscale=0.4,
        hyper_variance=3.0,
        jitter=0.01,
    )
    log_likelihood = -0.5 * (math.log(2 * math.pi * 2.26) + 1.0**2 / 2.26)
    kl = 0.5 * math.log(3.01 / 2.01) + (2.01 + 0.5**2) / (2 * 3.01) - 0.5
    expected = -log_likelihood + 0.1 * (1 / 2 + 1 / 4) * kl
    assert got == pytest.approx(expected, rel=1e-12)


def test_reference_gradients_match_finite_differences_of_numpy():
    parameters, tasks = generic_parameters(2), random_tasks(2, (5, 3))
    gradients = ReferenceFPacoh(parameters).gradients(*tasks, **SETTINGS)
    rng, width = np.random.default_rng(1), 1e-5
    for key, value in parameters.items():
        arrays, slopes = as_list(value), as_list(gradients[key])
        assert [a.shape for a in arrays] == [a.shape for a in slopes]
        # One random direction for each array: a wrong entry would show in the inner product.
        for array, slope in zip(arrays, slopes, strict=True):
            direction, original = rng.normal(size=array.shape), array.copy()
            array[...] = original + width * direction
            above = numpy_objective(parameters, *tasks, **SETTINGS)
            array[...] = original - width * direction
            below = numpy_objective(parameters, *tasks, **SETTINGS)
            array[...] = original
            expected = (above - below) / (2 * width)
            np.testing.assert_allclose(np.sum(slope * direction), expected, rtol=1e-5, atol=1e-8)


def test_reference_parameters_make_a_round_trip_and_are_copies():
    parameters = generic_parameters(3)
    reference = ReferenceFPacoh(parameters)
    copy = reference.parameters()
    assert copy.keys() == parameters.keys()
    for key, value in parameters.items():
        for a, b in zip(as_list(copy[key]), as_list(value), strict=True):
            np.testing.assert_array_equal(a, b)
    copy["mean_weights"][0][...] = 99.0
    assert not np.any(reference.parameters()["mean_weights"][0] == 99.0)


def test_reference_missing_parameters_are_named():
    parameters = generic_parameters(1)
    del parameters["log_lengthscale"]
    with pytest.raises(ValueError, match="log_lengthscale"):
        ReferenceFPacoh(parameters)


@pytest.mark.parametrize("length", [1, 4, 30])
def test_reference_measurement_set_has_distinct_data_rows_then_uniform_points(length):
    x = np.random.default_rng(0).uniform(size=(length, 2))
    points = measurement_set(x, -2.0, -1.0, 10, 10, np.random.default_rng(1))
    from_data = np.array([any(np.array_equal(p, row) for row in x) for p in points])
    assert points.shape == (20, 2)
    assert from_data.sum() == min(10, length)
    assert len(np.unique(points[from_data], axis=0)) == min(10, length)
    assert np.all((points[~from_data] >= -2.0) & (points[~from_data] <= -1.0))


def test_reference_training_lowers_the_objective_and_repeats_exactly():
    x, y, points = random_tasks(2, (8,) * 5)
    first, second = (ReferenceFPacoh.random(2, seed=3) for _ in range(2))
    before = first.objective(x, y, points, **SETTINGS)
    trained = first.train(x, y, num_steps=60, batch_size=3, seed=0, learning_rate=5e-3)
    again = second.train(x, y, num_steps=60, batch_size=3, seed=0, learning_rate=5e-3)
    np.testing.assert_array_equal(trained.losses, again.losses)
    assert first.objective(x, y, points, **SETTINGS) < before - 0.1


def test_reference_learning_rate_decays_after_a_thousand_steps():
    x, y, _ = random_tasks(1, (2, 2))
    trained = ReferenceFPacoh.random(1, seed=0).train(
        x,
        y,
        num_steps=1001,
        batch_size=1,
        seed=0,
        num_from_data=1,
        num_uniform=1,
        learning_rate=1e-3,
        learning_rate_decay=0.5,
    )
    assert trained.learning_rate == pytest.approx(5e-4)


def test_reference_too_large_a_batch_is_refused():
    x, y, _ = random_tasks(1, (2, 2))
    with pytest.raises(ValueError, match="batch of 3 tasks"):
        ReferenceFPacoh.random(1, seed=0).train(x, y, num_steps=1, batch_size=3, seed=0)


BOUNDS = np.array([[-1.0, 0.0], [3.0, 10.0]])


def hills(x):
    return -((x[:, 0] - 1.0) ** 2) - 0.05 * (x[:, 1] - 6.0) ** 2


def test_reference_acquisition_matches_numpy():
    """Mean plus two standard deviations, from the fitted hyper-parameters and textbook algebra."""
    rng = np.random.default_rng(0)
    x = rng.uniform(*BOUNDS, size=(12, 2))
    y, new = hills(x), rng.uniform(*BOUNDS, size=(30, 2))
    suggestion = ask(x, y, BOUNDS)
    model = suggestion.model
    lengthscale = model.covar_module.lengthscale.detach().numpy()
    noise_variance, constant = model.likelihood.noise.item(), model.mean_module.constant.item()

    def unit(a):
        return (a - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0]) / lengthscale

    kernel = np.exp(-0.5 * cdist(unit(x), unit(x), "sqeuclidean"))
    cross = np.exp(-0.5 * cdist(unit(new), unit(x), "sqeuclidean"))
    inverse = np.linalg.inv(kernel + noise_variance * np.eye(len(x)))
    level, scale = y.mean(), y.std(ddof=1)
    mean = constant + cross @ inverse @ ((y - level) / scale - constant)
    variance = 1 - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    expected = level + scale * (mean + 2 * np.sqrt(variance))
    np.testing.assert_allclose(suggestion.evaluate(new), expected, rtol=1e-5, atol=1e-6)


def test_reference_suggestion_maximises_the_acquisition_inside_the_bounds():
    rng = np.random.default_rng(1)
    x = rng.uniform(*BOUNDS, size=(8, 2))
    suggestion = ask(x, hills(x), BOUNDS)
    elsewhere = suggestion.evaluate(rng.uniform(*BOUNDS, size=(5000, 2)))
    assert np.all((suggestion.x >= BOUNDS[0]) & (suggestion.x <= BOUNDS[1]))
    here = suggestion.evaluate(suggestion.x[None])[0]
    assert here == pytest.approx(suggestion.acquisition_value, rel=1e-6)
    assert here >= elsewhere.max() - 1e-6


def test_reference_suggestion_repeats_and_leaves_torch_alone():
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(2).uniform(*BOUNDS, size=(1, 2))
    state = torch.get_rng_state()
    first, second = ask(x, hills(x), BOUNDS), ask(x, hills(x), BOUNDS)
    np.testing.assert_array_equal(first.x, second.x)
    assert torch.equal(torch.get_rng_state(), state)


def test_reference_misshapen_runs_and_bounds_are_refused():
    x = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"got \(0, 2\)"):
        ask(x[:0], np.zeros(0), BOUNDS)
    with pytest.raises(ValueError, match=r"\(2, 2\), got \(2, 3\)"):
        ask(x, np.zeros(3), np.zeros((2, 3)))
