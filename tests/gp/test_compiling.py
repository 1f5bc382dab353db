"""Programs compiled in less time compute the same."""

import jax.numpy as jnp
import numpy as np

from metaprior.gp import _compiling, compile_quickly


def test_compile_quickly_computes_the_same_and_traces_once():
    traced = []

    @compile_quickly
    def distance(x, name: str):
        traced.append(name)
        return jnp.sqrt(jnp.sum(x**2))

    assert distance(jnp.array([3.0, 4.0]), "a") == 5.0
    assert distance(jnp.array([6.0, 8.0]), "a") == 10.0
    assert traced == ["a"]


def test_compile_quickly_leaves_out_what_xla_does_not_know(monkeypatch):
    known = {"xla_llvm_disable_expensive_passes": True}
    monkeypatch.setattr(_compiling, "QUICK", {**known, "xla_there_is_no_such_option": 1})
    _compiling._accepted_options.cache_clear()
    try:
        assert _compiling._accepted_options() == known
        np.testing.assert_array_equal(compile_quickly(lambda x: x + 1.0)(jnp.zeros(2)), 1.0)
    finally:
        _compiling._accepted_options.cache_clear()


def test_compile_quickly_compiles_as_usual_on_an_accelerator(monkeypatch):
    monkeypatch.setattr(_compiling.jax, "default_backend", lambda: "gpu")
    _compiling._accepted_options.cache_clear()
    try:
        assert _compiling._accepted_options() is None
    finally:
        monkeypatch.undo()
        _compiling._accepted_options.cache_clear()
