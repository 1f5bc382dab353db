"""The training loop: steps that can be worked out, reproducibility, batches, failures, traces."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

from metaprior.data import Real, Space, Tasks, fit_standardiser
from metaprior.gp import FeatureKernel, GaussianProcess, NeuralMean, SquaredExponential
from metaprior.meta import (
    AbstractObjective,
    FPacohObjective,
    Progress,
    Schedule,
    gp_hyper_prior,
    measurement_sizes,
    meta_data,
    stack,
    train,
    train_many,
    train_many_at,
)

KEY = jax.random.key(0)
NO_DECAY = Schedule(learning_rate=0.01, learning_rate_decay=1.0, weight_decay=0.0)


class Toy(eqx.Module):
    """A model with a parameter of each rank, and things that are not parameters."""

    scalar: Float[Array, ""]
    vector: Float[Array, " a"]
    matrix: Float[Array, "a b"]
    count: Array
    name: str = eqx.field(static=True)


def toy() -> Toy:
    return Toy(jnp.asarray(0.5), jnp.asarray([1.0, -2.0]), jnp.ones((2, 3)), jnp.asarray(7), "toy")


class Slope(AbstractObjective):
    """The same gradient everywhere, in every parameter."""

    data: Float[Array, ""]

    def draw(self, *, key):
        return jnp.zeros(())

    def loss(self, model, batch):
        value = self.data * sum(jnp.sum(p) for p in (model.scalar, model.vector, model.matrix))
        return value, {"slope": value}


class Noisy(AbstractObjective):
    """A quadratic around a target, seen with noise that the key decides."""

    data: Float[Array, ""]
    weight: Float[Array, ""]

    def draw(self, *, key):
        return jax.random.normal(key, (2,))

    def loss(self, model, batch):
        near = jnp.sum((model.vector - self.data - batch) ** 2)
        small = self.weight * jnp.sum(model.matrix**2)
        return near + small, {"near": near, "small": small, "noise": batch[0]}


class Broken(AbstractObjective):
    """Two good terms and one that is undefined once the parameter has come below zero."""

    data: Float[Array, ""]

    def draw(self, *, key):
        return jnp.zeros(())

    def loss(self, model, batch):
        broken = jnp.log(model.scalar)
        return model.scalar + 0.0 * broken, {"first": model.scalar, "broken": broken}


def noisy(target: float = 0.0, weight: float = 1.0) -> Noisy:
    return Noisy(jnp.asarray(target), jnp.asarray(weight))


def trainable(model) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))]


def assert_equal(got, expected) -> None:
    for a, b in zip(trainable(got), trainable(expected), strict=True):
        np.testing.assert_array_equal(a, b)


# Under a constant gradient every step of Adam has the length of the learning rate.
@pytest.mark.parametrize(
    ("num_steps", "steps_of_full_length"),
    [(0, 0), (1, 1), (150, 150), (1000, 1000), (1001, 1000.5), (2500, 1000 + 500 + 125)],
)
def test_train_learning_rate_decays_every_thousand_steps(num_steps, steps_of_full_length):
    schedule = Schedule(learning_rate=0.001, learning_rate_decay=0.5, weight_decay=0.0)
    trained = train(toy(), Slope(jnp.asarray(3.0)), schedule, num_steps, key=KEY)
    for before, after in zip(trainable(toy()), trainable(trained.model), strict=True):
        expected = np.full(before.shape, 0.001 * steps_of_full_length)
        np.testing.assert_allclose(before - after, expected, rtol=1e-6)


def test_train_weight_decay_shrinks_matrices_only():
    """Without a gradient, only the decay acts: each step by the factor 1 - rate * decay."""
    schedule = Schedule(learning_rate=0.01, learning_rate_decay=1.0, weight_decay=0.5)
    trained = train(toy(), Slope(jnp.asarray(0.0)), schedule, 30, key=KEY).model
    np.testing.assert_allclose(trained.matrix, np.full((2, 3), (1 - 0.005) ** 30), rtol=1e-12)
    np.testing.assert_array_equal(trained.vector, [1.0, -2.0])
    assert float(trained.scalar) == 0.5


def test_train_keeps_what_is_not_trainable():
    trained = train(toy(), Slope(jnp.asarray(1.0)), NO_DECAY, 5, key=KEY).model
    assert int(trained.count) == 7 and trained.name == "toy"
    assert trained.count.dtype == toy().count.dtype


def test_train_matches_adam_by_hand():
    """Three steps on a quadratic in one number, from the published update rule."""
    schedule = Schedule(learning_rate=0.1, learning_rate_decay=1.0, weight_decay=0.2)
    trained = train(toy(), noisy(weight=0.5), schedule, 3, key=KEY).model
    w, m, v = 1.0, 0.0, 0.0
    for t in (1, 2, 3):
        gradient = 2 * 0.5 * w
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        step = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        w -= 0.1 * (step + 0.2 * w)
    np.testing.assert_allclose(trained.matrix, np.full((2, 3), w), rtol=1e-10)


@pytest.mark.parametrize("num_steps", [0, 1, 99, 100, 101, 250])
def test_train_history_has_one_value_per_step(num_steps):
    reports: list[Progress] = []
    trained = train(toy(), noisy(), NO_DECAY, num_steps, key=KEY, on_progress=reports.append)
    ends = [*range(100, num_steps, 100), num_steps] if num_steps else []
    assert [report.step for report in reports] == ends
    assert all(report.num_steps == num_steps for report in reports)
    if num_steps == 0:
        assert trained.history == {}
        return
    assert set(trained.history) == {"near", "small", "noise"}
    for name, values in trained.history.items():
        assert values.shape == (num_steps,)
        parts = [report.terms[name] for report in reports]
        np.testing.assert_array_equal(np.concatenate(parts), values)
    # The first value is that of the model as it was given: 6 ones, squared.
    assert trained.history["small"][0] == 6.0
    # Every step has noise of its own.
    assert len(np.unique(trained.history["noise"])) == num_steps


def test_train_longer_starts_like_a_shorter_training():
    short = train(toy(), noisy(), NO_DECAY, 130, key=KEY).history
    long = train(toy(), noisy(), NO_DECAY, 250, key=KEY).history
    for name in short:
        np.testing.assert_array_equal(short[name], long[name][:130])


def test_train_minimises_a_quadratic():
    schedule = Schedule(learning_rate=0.1, learning_rate_decay=0.1, weight_decay=0.0)
    trained = train(toy(), noisy(target=3.0), schedule, 3000, key=KEY).model
    np.testing.assert_allclose(trained.vector, [3.0, 3.0], atol=0.2)
    np.testing.assert_allclose(trained.matrix, np.zeros((2, 3)), atol=1e-3)


def test_train_names_the_term_of_a_loss_that_is_not_finite():
    schedule = Schedule(learning_rate=0.004, learning_rate_decay=1.0, weight_decay=0.0)
    objective = Broken(jnp.asarray(0.0))
    # From 0.5 the parameter needs 125 steps to zero: the first hundred are fine.
    assert np.isfinite(train(toy(), objective, schedule, 100, key=KEY).history["broken"]).all()
    with pytest.raises(FloatingPointError, match="The broken term .* near step 200 is not finite"):
        train(toy(), objective, schedule, 300, key=KEY)


def test_train_refuses_a_model_that_is_not_finite_after_the_last_step():
    """The terms are those before each step; the last step can still break the model."""
    schedule = Schedule(learning_rate=np.inf, learning_rate_decay=1.0, weight_decay=0.0)
    with pytest.raises(FloatingPointError, match="The trained model is not finite"):
        train(toy(), Slope(jnp.asarray(1.0)), schedule, 1, key=KEY)


# A small real problem: shifted parabolas on the square.

SPACE = Space(a=Real(0, 1), b=Real(0, 1))
TRACES: list[str] = []


def counted_tanh(x):
    """Runs once for every time that a network is traced, however often it is evaluated."""
    TRACES.append("tanh")
    return jnp.tanh(x)


def network(outputs: int, key) -> eqx.nn.MLP:
    return eqx.nn.MLP(2, outputs, 6, 1, counted_tanh, key=key)


def make_prior(key=KEY) -> GaussianProcess:
    key_mean, key_features = jax.random.split(key)
    kernel = SquaredExponential(jnp.log(0.5), jnp.asarray(0.0))
    features = network(2, key_features)
    return GaussianProcess(
        NeuralMean(network(1, key_mean)), FeatureKernel(kernel, features), jnp.log(1e-2)
    )


def make_objective(num_tasks: int = 5, kappa: float = 0.1) -> FPacohObjective:
    rng = np.random.default_rng(num_tasks)
    runs = []
    for _ in range(num_tasks):
        x, top = rng.uniform(size=(6, 2)), rng.normal(0.5, 0.1, 2)
        runs.append((x, -((x - top) ** 2).sum(axis=1)))
    tasks = Tasks.from_runs(runs, space=SPACE)
    return FPacohObjective(
        meta_data(tasks, fit_standardiser(tasks.x, tasks.y, tasks.mask)),
        gp_hyper_prior(0.5, 1.0),
        jnp.asarray(kappa),
        jnp.asarray(1e-3),
        measurement_sizes(8, 4, 6),
        3,
    )


def test_train_same_key_gives_the_same_prior_bit_for_bit():
    first, again = (train(make_prior(), make_objective(), NO_DECAY, 120, key=KEY) for _ in "ab")
    assert_equal(first.model, again.model)
    for name, values in first.history.items():
        np.testing.assert_array_equal(values, again.history[name])
    other = train(make_prior(), make_objective(), NO_DECAY, 120, key=jax.random.key(1))
    pairs = zip(trainable(first.model), trainable(other.model), strict=True)
    # All but the last bias of the features, which no distance between features depends on.
    assert sum(np.abs(a - b).max() > 1e-6 for a, b in pairs) >= len(trainable(other.model)) - 1


def test_train_objective_falls_on_a_small_real_problem():
    history = train(make_prior(), make_objective(), NO_DECAY, 500, key=KEY).history
    assert set(history) == {"fit", "complexity"}
    total = history["fit"] + history["complexity"]
    assert total[-100:].mean() < total[:20].mean() - 0.5
    assert history["complexity"].min() > 0


@pytest.mark.slow
def test_train_does_not_trace_again_for_new_numbers_and_tasks():
    """Learning rate, kappa, key, starting point, and one more task within the padding (5 to 8)."""
    train(make_prior(), make_objective(5), NO_DECAY, 120, key=KEY)
    TRACES.clear()
    schedule = Schedule(learning_rate=0.002, learning_rate_decay=0.9, weight_decay=0.1)
    start = make_prior(jax.random.key(3))
    for num_tasks, kappa, num_steps in ((5, 2.0, 30), (6, 0.1, 101), (8, 0.5, 7)):
        objective = make_objective(num_tasks, kappa)
        train(start, objective, schedule, num_steps, key=jax.random.key(num_tasks))
    assert len(TRACES) == 0
    # The control: tasks beyond the padding do trace again.
    train(start, make_objective(9), schedule, 7, key=KEY)
    assert len(TRACES) > 0


def test_train_many_equals_separate_trainings():
    """Different starts, kappas, rates, decays and keys over the same tasks."""
    num_steps, kappas, rates, decays = 110, (0.01, 0.1, 1.0), (0.01, 0.005, 0.002), (0.0, 0.1, 0.5)
    starts = [make_prior(jax.random.key(seed)) for seed in (5, 6, 7)]
    keys = jax.random.split(jax.random.key(9), 3)
    shared = make_objective()

    models = stack(starts)
    others = [eqx.tree_at(lambda o: o.data, make_objective(kappa=k), None) for k in kappas]
    objectives = eqx.tree_at(
        lambda o: o.data,
        stack(others),
        shared.data,
        is_leaf=lambda leaf: leaf is None,
    )
    schedules = Schedule(jnp.asarray(rates), jnp.ones(3), jnp.asarray(decays))
    together = train_many(models, objectives, schedules, num_steps, keys=keys)
    assert {values.shape for values in together.history.values()} == {(3, num_steps)}
    for i in range(3):
        alone = train(
            starts[i],
            make_objective(kappa=kappas[i]),
            Schedule(rates[i], 1.0, decays[i]),
            num_steps,
            key=keys[i],
        )
        for one, many in zip(trainable(alone.model), trainable(together.model), strict=True):
            np.testing.assert_allclose(many[i], one, rtol=1e-10, atol=1e-12)
        for name, values in alone.history.items():
            np.testing.assert_allclose(together.history[name][i], values, rtol=1e-8)
    assert together.model.mean.network.activation is counted_tanh


def test_train_many_at_equals_one_training_per_checkpoint():
    """Checkpoints inside and at the end of a compiled chunk of steps."""
    models, objectives = stack([toy(), toy()]), stack([noisy(0.0), noisy(2.0)])
    schedules = Schedule(jnp.asarray([0.01, 0.02]), jnp.ones(2), jnp.zeros(2))
    keys, checkpoints = jax.random.split(KEY), (3, 100, 130)
    how = {"keys": keys, "shared_data": False}
    found = train_many_at(models, objectives, schedules, checkpoints, **how)
    assert len(found) == 3
    for model, num_steps in zip(found, checkpoints, strict=True):
        assert_equal(model, train_many(models, objectives, schedules, num_steps, **how).model)
    for wrong in ((), (5, 5), (0, 4)):
        with pytest.raises(ValueError, match="give rising numbers >= 1"):
            train_many_at(models, objectives, schedules, wrong, **how)
