"""Expected hypervolume improvement and feasibility: against BoTorch, sampling and differences."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from metaprior.belief import AbstractBelief, AbstractMembers, MemberMoments, MemberSlopes
from metaprior.belief._mixture import Group
from metaprior.bo import FeasibilityScore, HypervolumeScore, hypervolume, undominated
from metaprior.bo._hypervolume import inferred_reference


class Waves(AbstractBelief):
    """Members with mean `a + b sin(3 x_0 + x_1)` and function variance `c + 0.1 x_1^2`."""

    def __init__(self, parameters, weights):
        self.parameters, self.weights = np.array(parameters), np.array(weights)

    def groups(self, x, y):
        return (Group(WaveMembers(self.parameters), self.weights),)


class WaveMembers(AbstractMembers):
    def __init__(self, parameters):
        self.a, self.b, self.c = parameters.T[:, :, None]

    @property
    def count(self):
        return len(self.a)

    def moments(self, x):
        mean = self.a + self.b * np.sin(3.0 * x[:, 0] + x[:, 1])
        return MemberMoments(mean, self.c + 0.1 * x[:, 1] ** 2, np.full(self.count, 7.0))

    def slopes(self, x):
        wave = self.b * np.cos(3.0 * x[:, 0] + x[:, 1])
        mean = np.stack([3.0 * wave, wave], axis=2)
        variance = np.zeros_like(mean)
        variance[..., 1] = 0.2 * x[:, 1]
        return MemberSlopes(self.moments(x), mean, variance)

    def joint(self, index, x):
        raise NotImplementedError

    def path(self, index, anchors, rng):
        raise NotImplementedError


def waves(parameters, weights=(1.0,)):
    return Waves(parameters, weights).condition(np.zeros((0, 2)), [])


ONE = [waves([[0.5, 1.0, 0.3]]), waves([[0.2, -0.8, 0.5]]), waves([[0.0, 0.6, 0.2]])]
MIXED = [
    waves([[0.5, 1.0, 0.3], [-0.4, 0.3, 0.9]], (0.7, 0.3)),
    waves([[0.2, -0.8, 0.5], [0.6, 0.1, 0.05], [0.0, 0.0, 0.0]], (0.5, 0.3, 0.2)),
    waves([[0.0, 0.6, 0.2]]),
]
FRONT = np.array([[-0.5, 0.9, 0.1], [0.4, 0.4, 0.3], [0.9, -0.2, 0.5], [0.0, 0.5, 0.6]])
POINTS = np.random.default_rng(0).uniform(-1.0, 1.0, size=(6, 2))


def score(beliefs, constraints=()):
    m = len(beliefs)
    boxes = undominated(FRONT[:, :m], np.full(m, -1.0))
    return HypervolumeScore.over(boxes, tuple(beliefs), tuple(constraints))


def drawn(belief, x, num, rng):
    """Independent draws of the mixture at one point."""
    moments, weights = belief.members(x[None])
    member = rng.choice(len(weights), size=num, p=weights)
    std = np.sqrt(moments.function_variance[member, 0])
    return moments.mean[member, 0] + std * rng.standard_normal(num)


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("beliefs", [ONE, MIXED], ids=["single", "mixture"])
def test_hypervolume_score_matches_sampling(beliefs, m):
    rng, num = np.random.default_rng(1), 4000
    front, reference = FRONT[:, :m], np.full(m, -1.0)
    before = hypervolume(front, reference)
    for x, value in zip(POINTS[:2], score(beliefs[:m]).values(POINTS[:2]), strict=True):
        values = np.column_stack([drawn(belief, x, num, rng) for belief in beliefs[:m]])
        gains = [hypervolume(np.vstack([front, v]), reference) - before for v in values]
        assert abs(np.exp(value) - np.mean(gains)) < 4 * np.std(gains) / np.sqrt(num)


@pytest.mark.oracle
@pytest.mark.parametrize("m", [2, 3])
def test_hypervolume_score_matches_botorch(m):
    torch = pytest.importorskip("torch")
    analytic = pytest.importorskip("botorch.acquisition.multi_objective.analytic")
    boxes = pytest.importorskip("botorch.utils.multi_objective.box_decompositions")
    testing = pytest.importorskip("botorch.utils.testing")

    reference = [-1.0] * m
    partitioning = boxes.NondominatedPartitioning(
        torch.tensor(reference).double(), torch.from_numpy(FRONT[:, :m])
    )
    for x, value in zip(POINTS, score(ONE[:m]).values(POINTS), strict=True):
        moments = [belief.moments(x[None]) for belief in ONE[:m]]
        mean = torch.tensor([[[one.mean[0] for one in moments]]]).double()
        variance = torch.tensor([[[one.function_variance[0] for one in moments]]]).double()
        model = testing.MockModel(testing.MockPosterior(mean=mean, variance=variance))
        theirs = analytic.ExpectedHypervolumeImprovement(model, reference, partitioning)
        expected = theirs(torch.from_numpy(x)[None, None]).item()
        assert value == pytest.approx(np.log(expected), rel=1e-8)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_hypervolume_score_gradients_match_differences(m):
    check_gradients(score(MIXED[:m], [waves([[0.1, 0.5, 0.2], [0.0, -0.7, 0.1]], (0.4, 0.6))]))


def test_first_score_gradients_match_differences():
    anchors = np.random.default_rng(2).uniform(-1.0, 1.0, size=(50, 2))
    check_gradients(HypervolumeScore.first(tuple(MIXED[:2]), (ONE[2],), anchors))


def check_gradients(function):
    step = 1e-6
    values, slopes = function.gradients(POINTS)
    np.testing.assert_allclose(values, function.values(POINTS), rtol=1e-10)
    for j, shift in enumerate(step * np.eye(2)):
        central = (function.values(POINTS + shift) - function.values(POINTS - shift)) / (2 * step)
        np.testing.assert_allclose(slopes[:, j], central, rtol=1e-5, atol=1e-7)


def test_hypervolume_score_is_finite_far_below_the_front():
    hopeless = [waves([[-80.0, 0.1, 0.01]]), waves([[-90.0, 0.1, 0.01]])]
    values, slopes = score(hopeless).gradients(POINTS)
    assert np.isfinite(values).all() and np.isfinite(slopes).all()
    assert values.max() < -1000 and np.abs(slopes).max() > 1.0


def test_hypervolume_score_is_finite_far_above_the_front():
    values, slopes = score([waves([[90.0, 0.1, 0.01]]), waves([[90.0, 0.1, 0.01]])]).gradients(
        POINTS
    )
    np.testing.assert_allclose(values, np.log(91.0**2), rtol=1e-2)
    assert np.isfinite(slopes).all()


def test_first_score_is_not_decided_by_the_units_of_a_member():
    """A member in thousands and one in units that disagree about where to ask."""
    anchors = np.random.default_rng(2).uniform(-1.0, 1.0, size=(200, 2))
    mild = waves([[0.0, 1.0, 0.01], [0.0, -1.0, 0.01]], (0.8, 0.2))
    loud = waves([[0.0, 1.0, 0.01], [5e3, -1e3, 1e4]], (0.8, 0.2))
    best = [
        anchors[np.argmax(HypervolumeScore.first((one,), (), anchors).values(anchors))]
        for one in (mild, loud)
    ]
    assert all(np.sin(3 * x[0] + x[1]) > 0.8 for x in best)


def test_feasibility_is_the_probability_under_the_mixture():
    one = waves([[0.1, 0.5, 0.2], [0.0, -0.7, 0.1]], (0.4, 0.6))
    other = waves([[-0.3, 1.5, 0.4]])
    found = np.exp(FeasibilityScore((one, other)).values(POINTS))
    for x, value in zip(POINTS, found, strict=True):
        expected = 1.0
        for belief in (one, other):
            moments, weights = belief.members(x[None])
            std = np.sqrt(moments.function_variance[:, 0])
            holds = norm.sf(0.0, moments.mean[:, 0], std)
            expected *= weights @ holds
        assert value == pytest.approx(expected, rel=1e-9)


def test_feasibility_far_into_the_infeasible_is_finite_and_points_back():
    values, slopes = FeasibilityScore((waves([[-40.0, 1.0, 0.04]]),)).gradients(np.zeros((1, 2)))
    assert np.isfinite(values[0]) and values[0] < -1000
    assert slopes[0, 0] > 0.0


@pytest.mark.parametrize("best", [-1.0, 0.5])
def test_hypervolume_of_one_objective_is_improvement_times_feasibility(best):
    boxes = undominated(np.array([[best]]), np.array([-9.0]))
    found = HypervolumeScore.over(boxes, (ONE[0],), (ONE[1],)).values(POINTS)
    for x, value in zip(POINTS, found, strict=True):
        moments, slack = ONE[0].moments(x[None]), ONE[1].moments(x[None])
        mean, std = moments.mean[0], np.sqrt(moments.function_variance[0])
        gain, _ = quad(lambda f: (f - best) * norm.pdf(f, mean, std), best, best + 12)  # noqa: B023
        allowed = norm.sf(0.0, slack.mean[0], np.sqrt(slack.function_variance[0]))
        assert value == pytest.approx(np.log(gain * allowed), rel=1e-6)


@pytest.mark.parametrize(("variance", "expected"), [(4.0, [0.45, -0.1]), (1.0, [0.9, -0.3])])
def test_inferred_reference_lies_below_what_may_be_on_the_front(variance, expected):
    """A place is expected to be beaten: mean (0.5, -3) beside (1, 0) observed. Two standard
    deviations above, its second value is 1 or -1, and only then may it be on the front."""
    beliefs = (waves([[0.5, 0.0, 0.0]]), waves([[-3.0, 0.0, variance]]))
    found = inferred_reference(np.array([[1.0, 0.0]]), beliefs, (), np.zeros((1, 2)))
    np.testing.assert_allclose(found, expected, atol=1e-5)
