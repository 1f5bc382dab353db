"""Five objectives: queries of the optimiser by BoTorch's qLogNEHVI."""

# ruff: noqa: E402 (nothing below can be imported without torch)

import numpy as np
import optuna
import pytest

torch = pytest.importorskip("torch", reason="`make oracle` installs torch")
pytestmark = pytest.mark.oracle

import metaprior as mp
from metaprior.adapters.botorch import ManyObjectives, model
from metaprior.adapters.botorch._many import JITTER, BeliefModel, ScaledBelief
from metaprior.adapters.optuna import MetaPriorSampler
from metaprior.bo import FrontSoFar, HypervolumeScore, Search, hypervolume, undominated
from metaprior.methods import SelfStandardisedGP, TrainedContents
from tests.adapters.hand_made import PRIORS, points, values

SEARCH = Search(num_global=96, num_local=32, num_starts=4, num_steps=6)
SPACE = mp.Space(x=mp.Real(0.0, 1.0), z=mp.Real(0.0, 1.0), w=mp.Real(0.0, 1.0))
NAMES = [f"f{i}" for i in range(5)]
# Each objective is best at a place of its own, all of them in one corner of the space.
TOPS = np.random.default_rng(0).uniform(0.1, 0.4, size=(5, 3))
WORST = 0.6


def prior(space=SPACE, lengthscale=1.0):
    method = SelfStandardisedGP(lengthscale=lengthscale, noise_variance=1e-6)
    surrogate = method.blank_surrogate(space.num_inputs)
    return mp.Prior(space, "minimize", TrainedContents(method, surrogate))


def five(space=SPACE, constraints=None, **settings):
    priors = mp.Priors({name: prior(space) for name in NAMES}, constraints or {})
    chosen = ManyObjectives(num_samples=16)
    return mp.MultiOptimizer(priors, many=chosen, search=SEARCH, **settings)


def values_at(point):
    away = np.sum((TOPS - [point["x"], point["z"], point["w"]]) ** 2, axis=1)
    return dict(zip(NAMES, away.tolist(), strict=True))


def volume(told):
    gained = [[-told_at[name] for name in NAMES] for told_at in told]
    return hypervolume(np.array(gained), -np.full(5, WORST))


@pytest.mark.parametrize("seed", [0, 1])
def test_multi_optimizer_of_five_objectives_is_better_than_random(seed):
    optimizer = five(reference=dict.fromkeys(NAMES, WORST), seed=seed)
    start = [{"x": 0.9, "z": 0.9, "w": 0.9}, {"x": 0.1, "z": 0.9, "w": 0.5}]
    for point in start:
        optimizer.tell(point, values_at(point))
    for _ in range(5):
        point = optimizer.ask()
        optimizer.tell(point, values_at(point))
    asked = SPACE.encode([outcome.x for outcome in optimizer.observations])
    assert np.isfinite(asked).all() and len(np.unique(asked.round(6), axis=0)) == 7
    found = volume([outcome.values for outcome in optimizer.observations])
    at_random = [
        volume([values_at(p) for p in start + SPACE.decode(rng.uniform(size=(5, 3)))])
        for rng in map(np.random.default_rng, range(40))
    ]
    assert found > 1.5 * np.median(at_random) and found > np.quantile(at_random, 0.75)


def test_multi_optimizer_of_five_objectives_asks_batches_from_the_first_on():
    optimizer = five()
    batch = optimizer.ask(3)
    optimizer.tell(batch[0], values_at(batch[0]))
    optimizer.tell(batch[1], None)
    encoded = SPACE.encode(batch + optimizer.ask(2))
    assert len(np.unique(encoded.round(3), axis=0)) == 5
    assert len(optimizer.pending) == 3


def test_multi_optimizer_of_five_objectives_is_reproducible():
    asked = []
    for _ in range(2):
        optimizer = five(seed=3)
        optimizer.tell({"x": 0.5, "z": 0.5, "w": 0.5}, values_at({"x": 0.5, "z": 0.5, "w": 0.5}))
        asked.append(optimizer.ask(2))
    assert asked[0] == asked[1]


@pytest.mark.parametrize("is_learned", [True, False], ids=["learned", "from the run alone"])
def test_multi_optimizer_of_five_objectives_stays_where_the_constraint_holds(is_learned):
    """All objectives are best at small `x`, which is not allowed."""
    optimizer = five(constraints={"excess": prior(lengthscale=3.0) if is_learned else None})
    for point in SPACE.decode(np.random.default_rng(4).uniform(size=(15, 3))):
        optimizer.tell(point, {**values_at(point), "excess": 0.5 - point["x"]})
    assert all(point["x"] > 0.45 for point in optimizer.ask(3))


def test_multi_optimizer_of_five_objectives_takes_mixed_spaces_and_candidates():
    space = mp.Space(
        kind=mp.Categorical(["a", "b"]),
        depth=mp.Integer(1, 4, when={"kind": ["b"]}),
        x=mp.Real(0.0, 1.0),
    )
    told = {"kind": "a", "x": 0.5}
    optimizer = five(space)
    optimizer.tell(told, dict.fromkeys(NAMES, 1.0))
    assert [p["kind"] for p in optimizer.ask(2, fixed={"kind": "b"})] == ["b"] * 2
    rows = [told, {"kind": "a", "x": 0.25}, {"kind": "b", "depth": 2, "x": 0.5}]
    among = five(space, candidates=rows)
    among.tell(told, dict.fromkeys(NAMES, 1.0))
    assert sorted(p["kind"] for p in among.ask(2)) == ["a", "b"]


@pytest.mark.parametrize("allowed", [None, [0.2, 1.0, 0.6]], ids=["free", "constrained"])
def test_sampled_values_agree_with_the_closed_form(allowed):
    """For two objectives, there is the exact improvement to compare with."""
    rng = np.random.default_rng(1)
    x, candidates = rng.uniform(size=(3, 3)), rng.uniform(size=(40, 3))
    y = np.array([[0.0, 1.0], [1.0, 0.0], [0.6, 0.6]])
    belief, reference = prior().belief, np.full(2, -0.5)
    objectives = tuple(belief.condition(x, own) for own in y.T)
    constraints = () if allowed is None else (belief.condition(x, allowed),)
    boxes = undominated(y, reference)
    exact = HypervolumeScore.over(boxes, objectives, constraints).values(candidates)
    front = FrontSoFar(objectives, constraints, x, x[:0], reference)
    sampled = ManyObjectives(num_samples=1024).values(front, candidates, rng)
    likely = exact > np.max(exact) - 3.0
    # Up to the units of the objectives, which are the same for all candidates.
    assert np.sum(likely) > 10 and np.ptp((sampled - exact)[likely]) < 0.02


@pytest.mark.parametrize("name", ["one member", "guarded", "weighed"])
def test_scaled_belief_has_the_moments_of_the_botorch_model(name):
    learned = PRIORS[name]
    sign = 1.0 if learned.direction == "maximize" else -1.0
    x, y = learned.space.encode(points(6, seed=1)), values(6, seed=2)
    belief = learned.belief.condition(x, sign * y)
    # A model of several values; the first and the second differ in level and unit.
    ours = BeliefModel([ScaledBelief(belief, 2.0, 4.0), ScaledBelief(belief, 0.0, 1.0)])
    theirs = model(learned, torch.tensor(x), torch.tensor(y)[:, None])
    where = torch.tensor(learned.space.encode(points(8, seed=3)[:4])).reshape(2, 2, -1)
    found, expected = ours.posterior(where), theirs.posterior(where)
    for i, (level, unit) in enumerate([(2.0, 4.0), (0.0, 1.0)]):
        mean = sign * (unit * found.mean[..., i : i + 1] + level)
        np.testing.assert_allclose(mean.numpy(), expected.mean.numpy(), rtol=1e-6)
        variance = unit**2 * (found.variance[..., i : i + 1] - JITTER)
        np.testing.assert_allclose(variance.numpy(), expected.variance.numpy(), rtol=1e-5)
    covariance = found.mvn.covariance_matrix[:, 2:, 2:] - JITTER * torch.eye(2)
    np.testing.assert_allclose(covariance, expected.mvn.covariance_matrix, rtol=1e-5)


def test_sampler_proposes_for_a_study_of_five_objectives():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = MetaPriorSampler(mp.Priors({name: prior() for name in NAMES}), seed=0)
    study = optuna.create_study(directions=["minimize"] * 5, sampler=sampler)
    study.optimize(
        lambda trial: tuple(
            values_at({name: trial.suggest_float(name, 0.0, 1.0) for name in "xzw"}).values()
        ),
        n_trials=3,
    )
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 3
