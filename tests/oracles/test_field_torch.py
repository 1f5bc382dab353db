"""The field benchmark's baselines in PyTorch, against SciPy and cases worked by hand."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from benchmarks.field._pools import Pool
from benchmarks.field._runs import by_scores
from metaprior.data import Real, Space, Tasks

pytestmark = pytest.mark.oracle

torch = pytest.importorskip("torch", reason="`make oracle` installs torch")

from benchmarks.field._botorch_reference import (  # noqa: E402
    _misranked,
    _weights,
    rank_weighted,
    single_task_gp,
)
from benchmarks.field._empirical_reference import chosen_shrinkage, empirical, shrunk  # noqa: E402
from benchmarks.field._hyperbo_reference import (  # noqa: E402
    DTYPE,
    DeepKernelGP,
    by_prior,
    negative_log_likelihood,
)
from benchmarks.field._hyperbo_reference import trained as train  # noqa: E402

SQUARE = Space(x0=Real(0.0, 1.0), x1=Real(0.0, 1.0))


def a_pool(seed, num=40):
    x = np.random.default_rng(seed).random((num, 2))
    return Pool(str(seed), x, -np.sum((x - 0.3) ** 2, axis=1))


def past(num=4, length=8):
    pools = [a_pool(seed) for seed in range(num)]
    runs = [(SQUARE.decode(p.x[: length + i]), p.y[: length + i]) for i, p in enumerate(pools)]
    return Tasks.from_runs(runs, space=SQUARE)


def test_likelihood_of_padded_runs_agrees_with_scipy():
    model = DeepKernelGP(2, seed=0)
    rng = np.random.default_rng(0)
    x, y = rng.random((3, 5, 2)), rng.standard_normal((3, 5))
    lengths = [5, 2, 4]
    mask = np.arange(5) < np.array(lengths)[:, None]
    with torch.no_grad():
        parts = [torch.tensor(a) for a in (x, np.where(mask, y, 0.0), mask)]
        found = float(negative_log_likelihood(model, *parts))
        total = 0.0
        for i, n in enumerate(lengths):
            mean, covariance = model.moments(torch.tensor(x[i, :n]))
            covariance = covariance + model.noise * torch.eye(n, dtype=DTYPE)
            total -= multivariate_normal(mean.numpy(), covariance.numpy()).logpdf(y[i, :n])
    assert found == pytest.approx(total / sum(lengths))


def test_runs_of_the_same_points_share_a_factorisation_and_nothing_else_changes():
    model, rng = DeepKernelGP(2, seed=0), np.random.default_rng(1)
    x, y = np.repeat(rng.random((1, 6, 2)), 3, axis=0), rng.standard_normal((3, 6))
    mask = torch.ones((3, 6), dtype=torch.bool)
    with torch.no_grad():
        one = negative_log_likelihood(model, torch.tensor(x[:1]), torch.tensor(y), mask)
        each = negative_log_likelihood(model, torch.tensor(x), torch.tensor(y), mask)
    assert float(one) == pytest.approx(float(each))


def test_likelihood_on_a_grid_is_the_empirical_divergence_and_a_constant():
    """KL(N(mean, covariance of tasks) || prior) changes as the likelihood does."""
    rng = np.random.default_rng(2)
    x, y = torch.tensor(rng.random((1, 4, 2))), torch.tensor(rng.standard_normal((9, 4)))
    mask = torch.ones(y.shape, dtype=torch.bool)
    empirical = torch.distributions.MultivariateNormal(
        y.mean(0), torch.cov(y.T, correction=0) + 1e-12 * torch.eye(4, dtype=DTYPE)
    )
    differences = []
    for seed in range(3):
        with torch.no_grad():
            model = DeepKernelGP(2, seed)
            mean, covariance = model.moments(x[0])
            covariance = covariance + model.noise * torch.eye(4, dtype=DTYPE)
            prior = torch.distributions.MultivariateNormal(mean, covariance)
            divergence = torch.distributions.kl_divergence(empirical, prior)
            likelihood = 4.0 * negative_log_likelihood(model, x, y, mask)
            differences.append(float(likelihood - divergence))
    assert np.ptp(differences) < 1e-8


def test_training_lowers_the_loss_until_it_stands_still():
    losses = train(past(), seed=0, max_steps=200).losses
    assert losses[-1] < losses[0] - 0.1


@pytest.mark.parametrize(
    "think",
    [
        lambda tasks: lambda x, y, pool, rng: single_task_gp(x, y, pool),
        rank_weighted,
        lambda tasks: by_prior(train(tasks, seed=0, max_steps=50)),
    ],
    ids=["SingleTaskGP", "RGPE", "HyperBO"],
)
def test_field_method_asks_every_row_once_and_predicts_before(think):
    search = by_scores(think(past()), lambda pool, seed: [0, 1, 2])
    record = search(a_pool(9), 9, 0)
    assert record["rows"][:3] == [0, 1, 2]
    assert len(set(record["rows"])) == 9
    cdf = np.array(record["cdf"])
    assert len(cdf) == 6 and np.all((cdf >= 0.0) & (cdf <= 1.0))
    assert np.isfinite(record["density@4"])


def test_misranked_counts_ordered_pairs():
    """Of three values, one swap of neighbours misranks one pair, in both of its orders."""
    drawn, y = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]]), np.array([1.0, 2.0, 3.0])
    below = drawn[:, :, None] < drawn[:, None, :]
    assert _misranked(below, y).tolist() == [0.0, 2.0]


def test_weights_leave_out_a_past_model_that_ranks_worse_than_the_runs_own():
    losses = np.array([[9.0] * 4, [0.0, 0.0, 0.0, 2.0], [1.0] * 4])
    weights = _weights(losses, 5, np.random.default_rng(0))
    np.testing.assert_allclose(weights, [0.0, 0.75, 0.25])


def test_shrunk_keeps_mean_and_trace_of_the_tasks():
    values = np.random.default_rng(3).standard_normal((6, 4))
    mean, covariance = shrunk(values, np.eye(4), 0.3)
    np.testing.assert_allclose(mean, values.mean(axis=0))
    assert np.trace(covariance) == pytest.approx(values.var(axis=0).sum())
    np.testing.assert_allclose(
        covariance - np.diag(np.diag(covariance)),
        0.7 * (np.cov(values.T, bias=True) - np.diag(values.var(axis=0))),
    )


def test_chosen_shrinkage_is_large_for_few_unrelated_tasks():
    values = np.random.default_rng(4).standard_normal((4, 20))
    assert chosen_shrinkage(values, np.eye(20), 1e-6) >= 0.4


def test_empirical_prior_predicts_the_mean_over_tasks_before_a_run():
    grid, rng = np.random.default_rng(5).random((12, 2)), np.random.default_rng(6)
    values = -np.sum((grid - 0.3) ** 2, axis=1) + 0.1 * rng.standard_normal((8, 12))
    tasks = Tasks.from_runs([(SQUARE.decode(grid), y) for y in values], space=SQUARE)
    pool = Pool("grid", grid, values[0])
    think = empirical(tasks)
    now, scores = think(np.zeros((0, 2)), np.zeros(0), pool, rng)
    mean, std = now.moments(grid)
    np.testing.assert_allclose(mean, values.mean(axis=0), atol=1e-3)
    assert np.all(std > 0.0) and np.all(np.isfinite(scores))
    record = by_scores(think)(pool, 6, 0)
    assert len(set(record["rows"])) == 6
