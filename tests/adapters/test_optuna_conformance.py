"""Optuna's own rules for samplers of a single objective that propose several parameters at once.

Their search spaces are many and differ, and every kind of space compiles anew. So the priors here
know the parameters of those tests in a part of their range that some spaces have and others have
not; the long way, with a prior that has a say in every space, takes minutes and is a `study`.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

import metaprior as mp
from metaprior.adapters.optuna import MetaPriorSampler

# The spaces of these tests have little in common with the prior's, or nothing, and that is said.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*sampled independently:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*goes beyond its prior:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*what its prior knows:UserWarning"),
]


@cache
def prior_over(names, low, high):
    """A prior over parameters between `low` and `high` that is learned in no time."""
    space = mp.Space(**{name: mp.Real(low, high) for name in names})
    points = np.random.default_rng(0).uniform(low, high, (3, 4, len(names)))
    tasks = mp.Tasks.from_runs([(x, np.sin(x).sum(axis=1)) for x in points], space=space)
    return mp.learn(tasks, method=mp.methods.FixedGP(), seed=0)


class TestRelative(RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """The prior has a say where parameters go from -1 to 1 without steps, linear or log."""

    @pytest.fixture
    def sampler(self):
        return lambda: MetaPriorSampler(prior_over("xy", 0.1, 0.4), seed=0)


@pytest.mark.slow
class TestBasic(BasicSamplerTestCase):
    """The prior has a say in objectives whose parameters go from 0 to 10 without steps."""

    @pytest.fixture
    def sampler(self):
        return lambda: MetaPriorSampler(prior_over("xy", 3.11, 3.19), seed=0)


class TestAnotherSpace(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """The prior knows none of the parameters."""

    @pytest.fixture
    def sampler(self):
        return lambda: MetaPriorSampler(prior_over(("other",), -1.0, 1.0), seed=0)


@pytest.mark.study
class TestWholeSpace(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """The prior knows every number of every space."""

    @pytest.fixture
    def sampler(self):
        return lambda: MetaPriorSampler(prior_over("xyz", -11.0, 101.0), seed=0)


class TestTwoObjectives(MultiObjectiveSamplerTestCase):
    """The priors know none of the parameters."""

    @pytest.fixture
    def sampler(self):
        prior = prior_over(("other",), -1.0, 1.0)
        return lambda: MetaPriorSampler(mp.Priors({"one": prior, "two": prior}), seed=0)


@pytest.mark.study
class TestTwoObjectivesInWholeSpace(MultiObjectiveSamplerTestCase):
    """The prior of each objective knows every number of every space."""

    @pytest.fixture
    def sampler(self):
        prior = prior_over("x", -11.0, 101.0)
        return lambda: MetaPriorSampler(mp.Priors({"one": prior, "two": prior}), seed=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "distribution",
    [
        FloatDistribution(1e-7, 1.0, log=True),
        IntDistribution(-10, 10, step=2),
        CategoricalDistribution((1, "a")),
    ],
    ids=str,
)
def test_two_objectives_in_whole_space_keep_to_one_distribution_of_each_kind(distribution):
    """A part of the suite above, for every night."""
    prior = prior_over("x", -11.0, 101.0)
    priors = mp.Priors({"one": prior, "two": prior})
    rule = MultiObjectiveSamplerTestCase.test_multi_objective_sample_independent
    rule(MultiObjectiveSamplerTestCase(), lambda: MetaPriorSampler(priors, seed=0), distribution)


@pytest.mark.slow
class TestRelativeWithConstraint(RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """A constraint that was learned, and that no trial reports."""

    @pytest.fixture
    def sampler(self):
        prior = prior_over("xy", 0.1, 0.4)
        constraint = replace(prior, direction="minimize")
        return lambda: MetaPriorSampler(mp.Priors({"value": prior}, {"c": constraint}), seed=0)


@cache
def conditional_prior():
    """A prior over Optuna's own conditional objective, whose other spaces have x as a number."""
    space = mp.Space(
        x=mp.Categorical([True, False]),
        y=mp.Real(0, 1, when={"x": [True]}),
        z=mp.Real(0, 1, when={"x": [False]}),
    )
    runs = [
        ([{"x": True, "y": 0.2}, {"x": False, "z": 0.7}, {"x": True, "y": 0.9}], [i, i + 0.5, 1.0])
        for i in (0.0, 0.2, 0.4)
    ]
    tasks = mp.Tasks.from_runs(runs, space=space, direction="minimize")
    return mp.learn(tasks, method=mp.methods.FixedGP(), seed=0)


@pytest.mark.study
class TestConditional(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """The prior knows which parameter exists where, in a space that other tests do not keep to."""

    @pytest.fixture
    def sampler(self):
        return lambda: MetaPriorSampler(conditional_prior(), seed=0)


@pytest.mark.parametrize(
    "rule",
    [
        BasicSamplerTestCase.test_conditional_parameter_objective,
        BasicSamplerTestCase.test_conditional_sample_independent,
        BasicSamplerTestCase.test_partial_fixed_sampling,
    ],
)
def test_sampler_with_conditions_keeps_to_the_quick_rules(rule):
    rule(BasicSamplerTestCase(), lambda: MetaPriorSampler(conditional_prior(), seed=0))
