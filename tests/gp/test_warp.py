"""Warping: monotone, harmless where it is off, and able to straighten what is bent."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import metaprior as mp
from metaprior.gp import EffectsProcess, Warp
from metaprior.methods._gp_surrogate import GPSurrogate

ON, OFF = jnp.asarray(True), jnp.asarray(False)
RNG = np.random.default_rng(0)
TAILS, SKEWS = RNG.uniform(-1.0, 1.0, (2, 200))


def curve(tail: float, skew: float, is_on=ON) -> Warp:
    return Warp(jnp.array([tail]), jnp.array([skew]), is_on)


# All curves at all points, in one compiled call.
EVERYWHERE = jax.jit(
    jax.vmap(
        lambda tail, skew, x: jax.vmap(lambda v: Warp(tail[None], skew[None], ON)(v[None])[0])(x),
        in_axes=(0, 0, None),
    )
)


def test_warp_curves_are_the_formula():
    x = np.linspace(-5.0, 5.0, 31)
    tail, skew = TAILS[:, None], SKEWS[:, None]
    inner = np.exp(tail) * np.log(x + np.sqrt(x**2 + 1.0)) + skew
    by_hand = (np.exp(inner) - np.exp(-inner)) / 2.0 - (np.exp(skew) - np.exp(-skew)) / 2.0
    np.testing.assert_allclose(EVERYWHERE(TAILS, SKEWS, x), by_hand, rtol=1e-8, atol=1e-9)


def test_warp_curves_rise_and_keep_zero():
    values = np.asarray(EVERYWHERE(TAILS, SKEWS, np.linspace(-4.0, 4.0, 41)))
    assert (np.diff(values, axis=1) > 0).all()
    np.testing.assert_allclose(values[:, 20], 0.0, atol=1e-12)


def test_warp_without_bends_or_switched_off_nothing_moves():
    x = jnp.array([-1.7])
    np.testing.assert_allclose(curve(0.0, 0.0)(x), x, rtol=1e-12)
    np.testing.assert_array_equal(curve(0.7, -0.3, OFF)(x), x)
    assert abs(float(curve(0.7, -0.3)(x)[0]) + 1.7) > 0.1  # which the switch decides


def test_warp_training_bends_curves_that_are_on_and_no_others():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(4, 6, 1))
    runs = [(points, np.sin(9 * points[:, 0] ** 3)) for points in x]
    tasks = mp.Tasks.from_runs(runs, space=mp.Space(x=mp.Real(0.0, 1.0)))
    bends = {}
    for on in (False, True):
        learned = mp.methods.FPacohMap(warp=on, num_steps=20).meta_train(tasks, key=jr.key(0))
        assert isinstance(learned, GPSurrogate) and isinstance(learned.process, EffectsProcess)
        bends[on] = np.asarray(learned.process.warp.log_tail)
    np.testing.assert_array_equal(bends[False], 0.0)
    assert abs(bends[True][0]) > 1e-3
