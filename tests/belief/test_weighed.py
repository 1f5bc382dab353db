"""The belief weighted by evidence: against scipy, processes built by hand, and known answers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import cdist

import metaprior as mp
from metaprior.belief import AveragedBelief, FittedBelief, past_means
from metaprior.belief import _conditioned as conditioned_module
from metaprior.belief import _weighed as weighed_module
from metaprior.belief._averaged import LENGTHSCALES, LEVEL_VARIANCE, NOISES, RATES, SHAPE
from metaprior.belief._guard import GuardedBelief
from metaprior.belief._kernels import StackedSquaredExponential
from metaprior.belief._learned import ProcessBelief
from metaprior.belief._linalg import JITTER
from metaprior.belief._maps import StackedNetwork, StackedWarp, Unchanged
from metaprior.belief._past import AMPLITUDE_VARIANCE, NOISE_VARIANCE, PAST_RESIDUALS, past_members
from metaprior.belief._processes import GaussianProcesses, pick
from metaprior.belief._refine import NOISE_STEPS, SCALE_STEPS, LogSpread
from metaprior.belief._residual import LEARNED_RESIDUALS, with_every_residual
from metaprior.belief._weighed import Part, WeighedBelief
from metaprior.methods import ABLR, Ensemble, FPacohMap, Weighed

D, WIDTH, FEATURES = 2, 4, 3
LEVEL, UNIT = 3.0, 2.0
NOISE = np.array([0.01, 0.05])


def network(rng, outputs):
    weights = rng.normal(size=(2, WIDTH, D)), rng.normal(size=(2, outputs, WIDTH))
    return StackedNetwork(weights, (rng.normal(size=(2, WIDTH)), rng.normal(size=(2, outputs))))


def learned(spread=0.0):
    """Two processes with networks, inputs in units of their own."""
    rng = np.random.default_rng(0)
    processes = GaussianProcesses(
        x_mean=np.full((2, D), 0.5),
        x_std=np.array([[0.3, 0.25], [0.28, 0.3]]),
        warp=Unchanged(),
        mean=network(rng, 1),
        features=network(rng, FEATURES),
        kernel=StackedSquaredExponential(np.full((2, 1), 1.5), np.array([0.6, 0.9])),
        offset_variance=np.array([0.2, 0.1]),
        amplitude_variance=np.array([0.1, 0.3]),
    )
    both = np.full(2, spread)
    units = np.full(2, LEVEL), np.full(2, UNIT)
    return ProcessBelief(processes, NOISE, LogSpread(both, both), *units)


def matern(x, z, lengthscale):
    s = np.sqrt(5.0) * cdist(x, z) / (lengthscale * np.sqrt(D))
    return (1.0 + s + s**2 / 3.0) * np.exp(-s)


def forward(net, i, z):
    hidden = np.tanh(z @ net.weights[0][i].T + net.biases[0][i])
    return hidden @ net.weights[1][i].T + net.biases[1][i]


class ByHand:
    """One learned process with one residual, written out for whole matrices."""

    def __init__(self, belief, i, std, lengthscale):
        self.p, self.i, self.std, self.lengthscale = belief.processes, i, std, lengthscale

    def _z(self, x):
        return (x - self.p.x_mean[self.i]) / self.p.x_std[self.i]

    def mean(self, x):
        return forward(self.p.mean, self.i, self._z(x))[:, 0]

    def kernel(self, x, z):
        a, b = (forward(self.p.features, self.i, self._z(part)) for part in (x, z))
        variance = self.p.kernel.variance[self.i]
        own = variance * np.exp(-0.5 * cdist(a, b, "sqeuclidean") / 1.5**2)
        effects = self.p.amplitude_variance[self.i] * np.outer(self.mean(x), self.mean(z))
        residual = self.std**2 * variance * matern(x, z, self.lengthscale)
        return own + effects + self.p.offset_variance[self.i] + residual


def drawn_run(num, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(num, D))
    return x, LEVEL + UNIT * (np.sin(5.0 * x[:, 0]) - x[:, 1] + 0.1 * rng.normal(size=num))


def past():
    rng = np.random.default_rng(3)
    lengths = (6, 9, 7)
    x, y, mask = np.zeros((3, 9, D)), np.zeros((3, 9)), np.zeros((3, 9), bool)
    for i, num in enumerate(lengths):
        x[i, :num] = rng.uniform(size=(num, D))
        y[i, :num] = LEVEL + i + UNIT * np.sin(4.0 * x[i, :num, 0] + i)
        mask[i, :num] = True
    return x, y, mask


MEANS = past_means(*past())
QUERIES = np.random.default_rng(9).uniform(size=(6, D))


def mixture(spread=1.0, known=None):
    known = learned(spread) if known is None else known
    return WeighedBelief(
        (
            Part(with_every_residual(known), 0.6, True),
            Part(past_members(MEANS), 0.3, True),
            Part(AveragedBelief(LEVEL, UNIT), 0.1, False),
        ),
        temper=1.0,
        guarded=known,
    )


def test_residual_members_are_every_learned_process_with_every_residual_by_hand():
    x, y = drawn_run(7)
    belief = learned()
    found = with_every_residual(belief).weighed(x, y)
    mean, variance, _ = found.members.moments(QUERIES)
    k = 0
    for i in range(2):
        for std, lengthscale in zip(*LEARNED_RESIDUALS[:2], strict=True):
            own = ByHand(belief, i, std, lengthscale)
            covariance = own.kernel(x, x) + (NOISE[i] + JITTER) * np.eye(len(x))
            residual = (y - LEVEL) / UNIT - own.mean(x)
            gain = np.linalg.solve(covariance, own.kernel(x, QUERIES)).T
            expected = LEVEL + UNIT * (own.mean(QUERIES) + gain @ residual)
            left = own.kernel(QUERIES, QUERIES) - gain @ own.kernel(x, QUERIES)
            np.testing.assert_allclose(mean[k], expected, rtol=1e-7)
            np.testing.assert_allclose(variance[k], UNIT**2 * np.diag(left), rtol=1e-6)
            k += 1
    assert k == found.members.count


def test_log_evidence_of_a_process_is_the_density_of_the_run():
    x, y = drawn_run(7)
    belief = learned()
    found = with_every_residual(belief).weighed(x, y)
    for i in range(2):
        for r, (std, lengthscale) in enumerate(zip(*LEARNED_RESIDUALS[:2], strict=True)):
            own = ByHand(belief, i, std, lengthscale)
            covariance = own.kernel(x, x) + (NOISE[i] + JITTER) * np.eye(len(x))
            marginal = stats.multivariate_normal(
                LEVEL + UNIT * own.mean(x), UNIT**2 * covariance, allow_singular=False
            )
            np.testing.assert_allclose(found.log_evidence[5 * i + r], marginal.logpdf(y), rtol=1e-8)


def test_log_evidence_of_a_refined_process_averages_its_steps_by_their_prior():
    x, y = drawn_run(5)
    belief, spread = learned(spread=1.5), 1.5
    found = with_every_residual(belief).weighed(x, y)
    own = ByHand(belief, 0, 0.0, 1.0)
    evidence, prior = [], []
    for noise_step in NOISE_STEPS:
        for scale_step in SCALE_STEPS:
            noise = NOISE[0] * np.exp(noise_step) + JITTER
            covariance = np.exp(scale_step) * own.kernel(x, x) + noise * np.eye(len(x))
            at = stats.multivariate_normal(LEVEL + UNIT * own.mean(x), UNIT**2 * covariance)
            evidence.append(at.logpdf(y))
            prior.append(
                stats.norm.pdf(noise_step, 0, spread) * stats.norm.pdf(scale_step, 0, spread)
            )
    expected = np.log(np.sum(np.exp(evidence) * prior) / np.sum(prior))
    np.testing.assert_allclose(found.log_evidence[0], expected, rtol=1e-8)


@settings(max_examples=15, deadline=None)
@given(num=st.integers(0, 8), seed=st.integers(0, 100), unit=st.sampled_from([1e-3, 1.0, 50.0]))
def test_log_evidence_of_the_averaged_gp_is_a_mixture_of_t_distributions(num, seed, unit):
    x, y = drawn_run(num, seed)
    y = unit * y
    found = AveragedBelief(unit * LEVEL, unit * UNIT).weighed(x, y)
    rate_weights = np.sqrt(RATES) / np.sum(np.sqrt(RATES))
    expected = []
    for lengthscale in LENGTHSCALES:
        own = np.exp(-0.5 * cdist(x, x, "sqeuclidean") / (lengthscale**2 * D)) + LEVEL_VARIANCE
        for noise in NOISES:
            matrix = own + (noise + JITTER) * np.eye(num)
            each = [
                stats.multivariate_t(
                    np.full(num, unit * LEVEL),
                    (unit * UNIT) ** 2 * rate / SHAPE * matrix,
                    df=round(2.0 * SHAPE),
                ).logpdf(y)
                if num
                else 0.0
                for rate in RATES
            ]
            expected.append(np.logaddexp.reduce(np.log(rate_weights) + each))
    np.testing.assert_allclose(found.log_evidence, expected, rtol=1e-6, atol=1e-6)


def test_weighed_belief_weighs_members_by_prior_times_evidence(monkeypatch):
    monkeypatch.setattr(weighed_module, "SMALLEST_WEIGHT", 0.0)
    x, y = drawn_run(3)
    belief = mixture()
    log_weights = np.concatenate(
        [
            np.log(part.weight) + found.log_prior + found.log_evidence
            for part in belief.parts
            for found in [part.members.weighed(x, y)]
        ]
    )
    expected = np.exp(log_weights - np.logaddexp.reduce(log_weights))
    np.testing.assert_allclose(belief.condition(x, y).weights, expected, rtol=1e-10)
    plain = expected[-len(LENGTHSCALES) * len(NOISES) :]
    np.testing.assert_allclose(belief.trust(x, y), 1.0 - plain.sum(), rtol=1e-10)


def test_weighed_belief_before_a_run_has_the_weights_of_its_parts():
    belief, none = mixture(), drawn_run(0)
    np.testing.assert_allclose(belief.trust(*none), 0.9)
    sums = [group.weights.sum() for group in belief.groups(*none)]
    np.testing.assert_allclose(sums, [0.6, 0.3, 0.1])


def test_weighed_belief_gives_up_only_members_that_would_not_have_mattered(monkeypatch):
    x, y = drawn_run(20)
    found = mixture().condition(x, y).moments(QUERIES)
    monkeypatch.setattr(weighed_module, "STAGES", ())
    monkeypatch.setattr(weighed_module, "SMALLEST_WEIGHT", 0.0)
    every = mixture().condition(x, y).moments(QUERIES)
    np.testing.assert_allclose(found.mean, every.mean, atol=0.01 * UNIT)
    np.testing.assert_allclose(np.sqrt(found.variance), np.sqrt(every.variance), rtol=0.02)


def test_weighed_belief_of_many_equal_members_is_that_of_one_of_each(monkeypatch):
    """No single one of many members may weigh much; together they do."""
    x, y = drawn_run(3)

    def found(n, copies):
        known = pick(learned(1.0), [0, 1] * copies)
        return mixture(known=known).condition(x[:n], y[:n]).moments(QUERIES)

    many = [found(n, 60) for n in (0, 3)]
    monkeypatch.setattr(weighed_module, "STAGES", ())
    monkeypatch.setattr(weighed_module, "SMALLEST_WEIGHT", 0.0)
    for moments, n in zip(many, (0, 3), strict=True):
        every = found(n, 1)
        np.testing.assert_allclose(moments.mean, every.mean, atol=0.02 * UNIT)
        np.testing.assert_allclose(np.sqrt(moments.variance), np.sqrt(every.variance), rtol=0.03)


def test_weighed_belief_says_that_the_evidence_is_not_finite():
    x, y = drawn_run(3)
    with pytest.raises(FloatingPointError, match="The evidence of the run is not finite"):
        mixture(known=replace(learned(), noise_variance=np.full(2, np.nan))).condition(x, y)


def test_weighed_belief_answers_the_same_whatever_was_asked_before():
    x, y = drawn_run(20)
    asked = mixture()
    # Growing, going back, and another run of the same length.
    for n, values in [(3, y), (6, y), (9, y), (20, y), (20, -y), (5, y), (20, y)]:
        found = asked.condition(x[:n], values[:n]).moments(QUERIES)
        fresh = mixture().condition(x[:n], values[:n]).moments(QUERIES)
        np.testing.assert_array_equal(found.mean, fresh.mean)
        np.testing.assert_array_equal(found.variance, fresh.variance)
        assert asked.trust(x[:n], values[:n]) == mixture().trust(x[:n], values[:n])


def test_weighed_belief_weighs_a_growing_run_once_per_point_and_stage(monkeypatch):
    lengths, compared = [], weighed_module._compared

    def counted(parts, run, temper):
        lengths.append(len(run.y))
        return compared(parts, run, temper)

    monkeypatch.setattr(weighed_module, "_compared", counted)
    belief, (x, y) = mixture(), drawn_run(10)
    for n in range(11):
        belief.trust(x[:n], y[:n])
        belief.condition(x[:n], y[:n])
    assert lengths == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 10]


def test_past_means_are_posterior_means_of_the_gp_fitted_to_the_run():
    x, y, mask = past()
    members = past_members(MEANS).weighed(*drawn_run(0)).members
    mean = members.moments(QUERIES).mean[:: len(PAST_RESIDUALS.std)]
    for i in range(3):
        own = FittedBelief(25).condition(x[i][mask[i]], y[i][mask[i]])
        np.testing.assert_allclose(mean[i], own.moments(QUERIES).mean, rtol=1e-6)


def test_past_members_are_the_process_built_by_hand():
    x, y = drawn_run(5)
    means = past_members(MEANS).weighed(*drawn_run(0)).members
    at_x, at_q = (means.moments(part).mean[::2] for part in (x, QUERIES))
    found = past_members(MEANS).weighed(x, y)
    expected_offset = np.var(MEANS.level) / MEANS.unit**2 + AMPLITUDE_VARIANCE
    for i in range(3):
        m_x, m_q = ((m[i] - MEANS.level[i]) / MEANS.unit[i] for m in (at_x, at_q))
        level, unit = MEANS.level[i], MEANS.unit[i]
        for r in range(2):
            std, lengthscale = PAST_RESIDUALS.std[r], PAST_RESIDUALS.lengthscale[r]

            def kernel(a, b, m_a, m_b, std=std, lengthscale=lengthscale, i=i):
                effects = expected_offset[i] + AMPLITUDE_VARIANCE * np.outer(m_a, m_b)
                return std**2 * matern(a, b, lengthscale) + effects

            k = 2 * i + r
            scale, noise = found.members.scale[k, 0], found.members.noise_variance[k, 0]
            covariance = scale * kernel(x, x, m_x, m_x) + (noise + JITTER) * np.eye(5)
            gain = np.linalg.solve(covariance, scale * kernel(x, QUERIES, m_x, m_q)).T
            mean = level + unit * (m_q + gain @ ((y - level) / unit - m_x))
            np.testing.assert_allclose(found.members.moments(QUERIES).mean[k], mean, rtol=1e-6)
            assert np.isclose(noise / NOISE_VARIANCE, np.exp(NOISE_STEPS)).any()


@pytest.mark.parametrize("num", [0, 1, 6])
def test_weighed_belief_slopes_are_finite_differences(num):
    found = mixture().condition(*drawn_run(num))
    slopes, step = found.slopes(QUERIES), 1e-6
    for j in range(D):
        shift = step * np.eye(D)[j]
        above, below = found.moments(QUERIES + shift), found.moments(QUERIES - shift)
        for name in ("mean", "function_variance"):
            change = (getattr(above, name) - getattr(below, name)) / (2.0 * step)
            np.testing.assert_allclose(getattr(slopes, name)[:, j], change, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("num", [0, 6])
@pytest.mark.parametrize("bends", [False, True])
def test_residual_members_in_one_cube_have_the_slopes_of_their_moments(num, bends):
    """What members with equal inputs share is evaluated once, forwards and backwards; those that
    bend their inputs in ways of their own share less."""
    rng, belief = np.random.default_rng(4), learned(1.0)
    curves = StackedWarp(0.3 * rng.normal(size=(2, D)), rng.normal(size=(2, D)), np.full(2, True))
    processes = replace(
        belief.processes, x_std=np.full((2, D), 0.3), warp=curves if bends else Unchanged()
    )
    own = with_every_residual(replace(belief, processes=processes))
    members = own.weighed(*drawn_run(num)).members
    by_mean, by_variance = rng.normal(size=(2, members.count, len(QUERIES)))

    def total(x):
        mean, variance, _ = members.moments(x)
        return np.sum(by_mean * mean + by_variance * variance, axis=0)

    found = members.smooth_moments(QUERIES).pullback(by_mean, by_variance)
    _, mean, variance = members.slopes(QUERIES)
    each = np.einsum("Kk,Kkd->kd", by_mean, mean) + np.einsum("Kk,Kkd->kd", by_variance, variance)
    np.testing.assert_allclose(found, each, rtol=1e-9, atol=1e-9)
    step = 1e-6 * np.eye(D)
    for j in range(D):
        change = (total(QUERIES + step[j]) - total(QUERIES - step[j])) / 2e-6
        np.testing.assert_allclose(found[:, j], change, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("num", [0, 6])
def test_members_have_the_same_joint_distributions_together_and_alone(num, monkeypatch):
    found = mixture().condition(*drawn_run(num))
    for group in found.groups:
        members, order = group.members, np.arange(group.members.count)[::-1].tolist()
        moments, together = members.moments(QUERIES), members.joints(order, QUERIES)
        with monkeypatch.context() as patch:
            patch.setattr(conditioned_module, "BLOCK_SIZE", 2 * len(QUERIES) ** 2)
            in_blocks = members.joints(order, QUERIES)
        for index, one, other in zip(order, together, in_blocks, strict=True):
            np.testing.assert_allclose(one.mean, moments.mean[index], rtol=1e-9)
            variance = moments.function_variance[index]
            np.testing.assert_allclose(np.diag(one.covariance), variance, rtol=1e-7)
            for part, expected in zip(other, members.joint(index, QUERIES), strict=True):
                np.testing.assert_allclose(part, expected, rtol=1e-9, atol=1e-12)


def test_members_draw_the_same_together_and_alone():
    (group, *_) = mixture().condition(*drawn_run(6)).groups
    indices, nums = [0, 2, 4], [4, 1, 3]
    together = group.members.samples(indices, nums, QUERIES, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    for index, num, own in zip(indices, nums, together, strict=True):
        alone = group.members.sample(index, QUERIES, num, rng)
        assert own.shape == (num, len(QUERIES))
        np.testing.assert_allclose(own, alone, rtol=1e-6, atol=1e-6)


def test_weighed_belief_samples_and_paths_have_the_moments_of_the_mixture():
    found, rng = mixture().condition(*drawn_run(4)), np.random.default_rng(0)
    moments = found.moments(QUERIES)
    std = np.sqrt(moments.function_variance)
    samples = found.sample(QUERIES, 4000, rng)
    np.testing.assert_allclose((samples.mean(axis=0) - moments.mean) / std, 0.0, atol=0.08)
    np.testing.assert_allclose(samples.std(axis=0) / std, 1.0, atol=0.1)
    paths = np.stack([found.path(QUERIES, rng)(QUERIES) for _ in range(300)])
    np.testing.assert_allclose((paths.mean(axis=0) - moments.mean) / std, 0.0, atol=0.3)


def test_weighed_belief_trust_falls_only_when_the_run_is_unlike_the_past():
    belief = WeighedBelief(
        (Part(past_members(MEANS), 0.9, True), Part(AveragedBelief(LEVEL, UNIT), 0.1, False)),
        temper=1.0,
        guarded=learned(),
    )
    # With many more points a GP that does not transfer knows the function as well.
    x = np.random.default_rng(5).uniform(size=(20, D))
    like = LEVEL + 1 + UNIT * np.sin(4.0 * x[:, 0] + 1)
    unlike = LEVEL + UNIT * np.sin(9.0 * x[:, 1])
    assert belief.trust(x, like) > 0.9
    assert belief.trust(x, unlike) < 0.5


def test_weighed_belief_fixed_keeps_its_weights_whatever_is_made_up():
    x, y = drawn_run(6)
    belief = mixture()
    fixed = belief.fixed(x, y)
    np.testing.assert_allclose(
        fixed.condition(x, y).moments(QUERIES).mean, belief.condition(x, y).moments(QUERIES).mean
    )
    more = np.vstack([x, QUERIES[:1]]), np.append(y, LEVEL + 5.0 * UNIT)
    np.testing.assert_allclose(
        fixed.condition(*more).weights, belief.condition(x, y).weights, rtol=1e-12
    )
    assert not np.array_equal(belief.condition(*more).weights, belief.condition(x, y).weights)


def test_weighed_prior_asks_the_same_after_saving_and_knows_its_past(saved, run, queries):
    kept = saved("Weighed")
    in_memory = kept.prior.belief.condition(*run).moments(queries)
    for found, expected in zip(
        kept.belief.condition(*run).moments(queries), in_memory, strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    assert kept.belief.trust(run[0][:0], run[1][:0]) == pytest.approx(0.95)
    assert [part.has_past for part in kept.belief.parts] == [True, True, False]


def test_weighed_prior_saved_behind_a_guard_is_still_asked_behind_it(saved, run):
    guarded = saved("Guarded").belief
    assert isinstance(guarded, GuardedBelief)
    assert guarded.fixed(*run) is guarded


@pytest.mark.parametrize(
    "make, complaint",
    [
        (lambda: Weighed(ABLR()), "learns Gaussian processes"),
        (lambda: Weighed(Ensemble(ABLR())), "learns Gaussian processes"),
        (lambda: Weighed(temper=0.0), "give positive numbers"),
        (lambda: Weighed(past_weight=0.97), "less than 1 in all"),
    ],
)
def test_weighed_refuses_what_it_cannot_weigh(make, complaint):
    with pytest.raises((TypeError, ValueError), match=complaint):
        make()


def test_past_means_keep_a_bounded_number_of_runs_and_points():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(30, 60, D)), rng.normal(size=(30, 60))
    found = past_means(x, y, np.ones((30, 60), bool))
    assert found.x.shape == (24, 50, D)
    assert np.max(found.x, axis=(1, 2)).all()
    for kept, own, values in zip(found.x[:1], x[:1], y[:1], strict=True):
        best = own[np.argmax(values)]
        assert np.any(np.all(kept == best, axis=1))


def test_weighed_prior_of_tasks_with_features_shows_them_to_learned_processes_only():
    rng, space = np.random.default_rng(0), mp.Space(x=mp.Real(0.0, 1.0), z=mp.Real(0.0, 1.0))
    runs = [(rng.uniform(size=(5, 2)), rng.normal(size=5)) for _ in range(4)]
    told = [{"size": float(size)} for size in (1, 2, 4, 8)]
    tasks = mp.Tasks.from_runs(runs, space=space, features=told)
    prior = mp.learn(tasks, method=Weighed(FPacohMap(num_steps=3)), seed=0)
    assert [feature.name for feature in prior.features.used] == ["size"]
    means = []
    for size in (1.0, 8.0):
        belief = prior.for_task({"size": size}).belief
        assert isinstance(belief, WeighedBelief)
        groups = belief.groups(np.zeros((0, 2)), np.zeros(0))
        means.append([group.members.moments(np.full((1, 2), 0.3)).mean for group in groups])
    (ours, past, averaged), (other, same_past, same_averaged) = means
    assert np.abs(ours - other).max() > 1e-6
    np.testing.assert_array_equal(past, same_past)
    np.testing.assert_array_equal(averaged, same_averaged)
