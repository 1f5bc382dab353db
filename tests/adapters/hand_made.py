"""Untrained priors with arrays of all kinds: what hosts are tested on."""

from dataclasses import dataclass

import numpy as np

import metaprior as mp
from metaprior.belief import (
    AbstractBelief,
    AbstractContents,
    AbstractStackedKernel,
    AveragedBelief,
    FittedBelief,
    StackedConstantKernel,
    StackedLinear,
    StackedMatern,
    StackedNetwork,
    StackedPeriodic,
    StackedProduct,
    StackedRationalQuadratic,
    StackedSquaredExponential,
    StackedStretch,
    StackedSum,
    StackedWarp,
    Unchanged,
    past_means,
)
from metaprior.belief._guard import GuardedBelief, GuardSettings
from metaprior.belief._learned import ProcessBelief
from metaprior.belief._linear import LearnedFeatures, LinearBelief
from metaprior.belief._past import past_members
from metaprior.belief._processes import GaussianProcesses
from metaprior.belief._refine import LogSpread
from metaprior.belief._residual import with_every_residual
from metaprior.belief._weighed import Part, WeighedBelief
from metaprior.data import TaskFeatures
from metaprior.data._features import NumberFeature

MIXED = mp.Space(
    rate=mp.Real(1e-4, 1.0, log=True),
    depth=mp.Integer(2, 9),
    act=mp.Categorical(["relu", "tanh", "elu"]),
    width=mp.Integer(8, 512, log=True),
    drop=mp.Real(-1.0, 2.0),
)
NO_FEATURES = TaskFeatures()
SIZE = TaskFeatures((NumberFeature("size", 0.0, 10.0, False, 0.4),))


@dataclass
class HandMade(AbstractContents):
    """A belief that was made and not learned."""

    made: AbstractBelief

    @property
    def settings(self):
        return {"name": "HandMade"}

    @property
    def arrays(self):
        return {}

    @property
    def method(self):
        raise NotImplementedError

    @property
    def surrogate(self):
        raise NotImplementedError

    def belief(self, num_columns):
        return self.made


def network(rng, members, sizes, *, ends_bent=False):
    layers = list(zip(sizes[:-1], sizes[1:], strict=True))
    return StackedNetwork(
        tuple(rng.normal(size=(members, o, i)) for i, o in layers),
        tuple(rng.normal(size=(members, o)) for _, o in layers),
        ends_bent,
    )


def composed(rng, members, width) -> AbstractStackedKernel:
    """Every kernel, in sums, products and stretched."""

    def some(*shape):
        return np.exp(0.3 * rng.normal(size=(members, *shape)))

    smooth = StackedSum(
        StackedSquaredExponential(some(width), some()),
        StackedRationalQuadratic(some(1), some(), some()),
    )
    rough = StackedSum(
        StackedMatern(some(width), some(), 1.5),
        StackedProduct(StackedMatern(some(1), some(), 2.5), StackedLinear(some(width))),
    )
    others = StackedStretch(
        StackedSum(
            StackedProduct(
                StackedPeriodic(some(width), some(), some()), StackedMatern(some(1), some(), 0.5)
            ),
            StackedConstantKernel(some()),
        ),
        some(width),
    )
    return StackedSum(StackedSum(smooth, rough), others)


def learned(seed, columns, *, members=1, full=False) -> ProcessBelief:
    """Networks for mean and features; with `full`, every effect and every kernel."""
    rng = np.random.default_rng(seed)
    nothing, some = np.zeros(members), np.exp(0.3 * rng.normal(size=members))
    kernel = (
        composed(rng, members, 2)
        if full
        else StackedSquaredExponential(np.exp(0.3 * rng.normal(size=(members, 2))), some)
    )
    tail, skew = 0.2 * rng.normal(size=(2, members, columns))
    warp = StackedWarp(tail, skew, np.arange(members) % 2 == 0) if full else Unchanged()
    processes = GaussianProcesses(
        x_mean=0.5 + 0.05 * rng.normal(size=(members, columns)),
        x_std=0.3 * np.exp(0.1 * rng.normal(size=(members, columns))),
        warp=warp,
        mean=network(rng, members, (columns, 4, 1)),
        features=network(rng, members, (columns, 4, 2)),
        kernel=kernel,
        offset_variance=0.3 * some if full else nothing,
        amplitude_variance=0.2 * some if full else nothing,
    )
    spread = LogSpread(2.0 * np.ones(members), 0.5 * np.ones(members))
    return ProcessBelief(processes, 0.01 * some, spread, 5.0 + nothing, 3.0 * some)


def linear(seed, columns, *, members=2) -> LinearBelief:
    rng = np.random.default_rng(seed)
    ones = np.ones(members)
    features = LearnedFeatures(
        0.5 * np.ones((members, columns)),
        0.3 * np.ones((members, columns)),
        network(rng, members, (columns, 6, 8), ends_bent=True),
    )
    spread = LogSpread(ones, ones)
    return LinearBelief(features, 0.5 * ones, 0.01 * ones, spread, 5.0 * ones, 3.0 * ones)


def guarded(seed, columns) -> GuardedBelief:
    """A guard that never decides: both beliefs count after any run."""
    settings = GuardSettings(0.6, 0.1, 2.0, -1.0)
    return GuardedBelief(learned(seed, columns, members=3), AveragedBelief(5.0, 3.0), settings)


def weighed(seed, columns) -> WeighedBelief:
    """Learned processes with residuals, two past tasks of unequal length, and the averaged GP."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(size=(2, 6, columns)), 5.0 + 3.0 * rng.normal(size=(2, 6))
    mask = np.arange(6) < np.array([[6], [4]])
    own = learned(seed, columns, members=2, full=True)
    return WeighedBelief(
        (
            Part(with_every_residual(own), 0.5, True),
            Part(past_members(past_means(x, y, mask)), 0.4, True),
            Part(AveragedBelief(5.0, 3.0), 0.1, False),
        ),
        temper=0.1,
        guarded=own,
    )


def prior_of(
    belief: AbstractBelief, *, space=MIXED, direction="maximize", features=NO_FEATURES
) -> mp.Prior:
    return mp.Prior(space, direction, HandMade(belief), features=features)


WIDTH = MIXED.num_columns
PRIORS = {
    "one member": prior_of(learned(0, WIDTH), direction="minimize"),
    "every kernel": prior_of(learned(1, WIDTH, members=3, full=True)),
    "guarded": prior_of(guarded(2, WIDTH), direction="minimize"),
    "linear": prior_of(linear(3, WIDTH)),
    "averaged": prior_of(AveragedBelief(5.0, 3.0)),
    "fitted": prior_of(FittedBelief(20)),
    "features": prior_of(learned(4, WIDTH + 1), features=SIZE),
    "weighed": prior_of(weighed(5, WIDTH), direction="minimize"),
}


def points(num, *, seed, space=MIXED):
    """Valid points, the second seen twice if there are that many."""
    unit = np.random.default_rng(seed).uniform(size=(num, space.num_columns))
    found = space.decode(unit)
    if num > 4:
        found[4] = found[1]
    return found


def values(num, *, seed):
    return 5.0 + 3.0 * np.random.default_rng(seed).normal(size=num)
