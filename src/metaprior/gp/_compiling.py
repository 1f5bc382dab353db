"""Programs that run for less time than a compiler spends on making them fast.

XLA has one setting for all programs of a process, and the user's other programs may need it as it
is. These settings belong to one program each. They are for programs that take milliseconds to run:
compiling takes half the time, and running about a fifth longer.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

QUICK = {
    "xla_backend_optimization_level": 1,
    "xla_cpu_use_fusion_emitters": False,
    "xla_llvm_disable_expensive_passes": True,
}


def compile_quickly(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `equinox.filter_jit(function)`, compiled in less time to code that is a little slower.

    On an accelerator it is compiled as usual.
    """

    @cache
    def compiled() -> Callable[..., Any]:
        # The checker does not know that further settings go to `jax.jit`.
        return eqx.filter_jit(
            function,
            compiler_options=_accepted_options(),  # pyright: ignore[reportCallIssue]
        )

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return compiled()(*args, **kwargs)

    return call


@cache
def _accepted_options() -> dict[str, Any] | None:
    """Those of `QUICK` that this version of XLA knows; `None` if there are none.

    Found out at the first use: asking starts JAX's back end, which an import must not do.
    """
    if jax.default_backend() != "cpu":
        return None
    if _is_accepted(QUICK):
        return QUICK
    return {name: value for name, value in QUICK.items() if _is_accepted({name: value})} or None


def _is_accepted(options: dict[str, Any]) -> bool:
    try:
        jax.jit(lambda: jnp.zeros(()), compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
