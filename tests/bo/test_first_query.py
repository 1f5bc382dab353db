"""The first query of a mixture: the regret its members expect, each in units of its own."""

from dataclasses import dataclass

import numpy as np

from metaprior.belief import AbstractBelief, AveragedBelief, past_means
from metaprior.belief._mixture import Group, equal_group
from metaprior.belief._past import past_members
from metaprior.belief._weighed import Part, WeighedBelief
from metaprior.bo import RestlessConfidenceBound
from metaprior.bo._acquisition import ShareScore

ANCHORS = np.random.default_rng(0).uniform(size=(200, 2))
TOPS = np.array([[0.2, 0.3], [0.25, 0.35], [0.9, 0.9]])
# The task that is unlike the others has by far the largest values.
SCALES = np.array([1.0, 1.0, 1000.0])


def mixture():
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(3, 30, 2))
    distance = np.sum((x - TOPS[:, None]) ** 2, axis=2)
    means = past_means(x, -SCALES[:, None] * distance, np.ones((3, 30), bool))
    averaged = AveragedBelief(0.0, 1.0)
    parts = (Part(past_members(means), 0.9, True), Part(averaged, 0.1, False))
    return WeighedBelief(parts, temper=1.0, guarded=averaged)


def empty(belief):
    return belief.condition(np.zeros((0, 2)), np.zeros(0))


def test_first_query_of_a_mixture_follows_most_past_tasks_whatever_their_scale():
    scored = RestlessConfidenceBound().score(empty(mixture()), ANCHORS, np.random.default_rng(0))
    best = ANCHORS[np.argmax(scored.values)]
    assert np.linalg.norm(best - TOPS[:2].mean(axis=0)) < 0.25


def test_first_query_score_is_the_mean_share_of_the_gap():
    belief = empty(mixture())
    moments, weights = belief.members(ANCHORS)
    expected = np.zeros(len(ANCHORS))
    for mean, weight in zip(moments.mean, weights, strict=True):
        if np.ptp(mean) > 0.0:  # the averaged GP says the same everywhere
            gap = mean.max() - np.median(mean)
            expected += weight * np.clip((mean - mean.max()) / gap, -3.0, None)
    found = ShareScore.of(belief, ANCHORS).values(ANCHORS)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_first_query_score_has_the_slopes_of_its_values():
    score, x, step = ShareScore.of(empty(mixture()), ANCHORS), ANCHORS[:12], 1e-6
    values, slopes = score.gradients(x)
    np.testing.assert_allclose(values, score.values(x))
    for j in range(2):
        shift = step * np.eye(2)[j]
        change = (score.values(x + shift) - score.values(x - shift)) / (2.0 * step)
        np.testing.assert_allclose(slopes[:, j], change, rtol=1e-5, atol=1e-6)


@dataclass(frozen=True)
class OneGroup(AbstractBelief):
    """The averaged GP of the mixture by itself."""

    def groups(self, x, y) -> tuple[Group, ...]:
        return (equal_group(AveragedBelief(0.0, 1.0).groups(x, y)[0].members),)


def test_first_query_of_a_single_kind_of_members_is_still_that_of_the_bound():
    belief, rng = empty(OneGroup()), np.random.default_rng(0)
    scored = RestlessConfidenceBound().score(belief, ANCHORS, rng)
    moments = belief.moments(ANCHORS)
    np.testing.assert_allclose(scored.values, moments.mean + np.sqrt(moments.variance))
