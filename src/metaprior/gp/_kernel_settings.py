"""Kernels as JSON has them, and back: the one place where a kernel's name becomes a class.

Kernels of other packages are added by `register_kernel`, or by an entry point of the group
`metaprior.kernels`, which is how a prior with such a kernel is loaded in a process that has not
imported it. A file never names a module to import.
"""

import dataclasses
from importlib.metadata import entry_points
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from metaprior.gp._kernels import (
    AbstractKernel,
    Constant,
    Linear,
    Matern,
    Periodic,
    ProductKernel,
    RationalQuadratic,
    SquaredExponential,
    SumKernel,
)

ENTRY_POINTS = "metaprior.kernels"

# Sums of products of a few kernels; deeper nesting was not written by metaprior.
DEEPEST = 16

OWN_KERNELS: dict[str, type[AbstractKernel]] = {
    kernel.__name__: kernel
    for kernel in (
        Constant,
        Linear,
        Matern,
        Periodic,
        ProductKernel,
        RationalQuadratic,
        SquaredExponential,
        SumKernel,
    )
}

_registered: dict[str, type[AbstractKernel]] = {}

Kernel = TypeVar("Kernel", bound=type[AbstractKernel])


def register_kernel(kernel: Kernel) -> Kernel:
    """Make `kernel`, a class of your own, usable in a method's settings; usable as a decorator.

    Its fields must be numbers, arrays of at most one dimension, or kernels. Files call it by its
    class name, so that must not be the name of another kernel.
    """
    name = kernel.__name__
    known = _registered.get(name)
    # A module that is reloaded defines its classes anew: the newest counts.
    is_other = known is not None and known.__module__ != kernel.__module__
    if name in OWN_KERNELS or is_other:
        raise ValueError(
            f"There is already a kernel called {name!r}; rename the class, by which files name it."
        )
    _registered[name] = kernel
    return kernel


def kernel_settings(kernel: AbstractKernel) -> dict[str, Any]:
    """`kernel` as JSON has it: its name under `"kernel"`, and its fields."""
    name = type(kernel).__name__
    if _known(name) is not type(kernel):
        raise ValueError(
            f"A method cannot have a kernel of the class {name}, which could not be saved; use "
            f"{', '.join(OWN_KERNELS)}, or call `metaprior.gp.register_kernel` on the class."
        )
    fields = {f.name: _plain(name, f.name, getattr(kernel, f.name)) for f in _fields(kernel)}
    return {"kernel": name, **fields}


def kernel_of(described: Any, *, depth: int = 1) -> AbstractKernel:
    """The kernel that `kernel_settings` described."""
    if not isinstance(described, dict) or not isinstance(described.get("kernel"), str):
        raise ValueError(f"{described!r} is not a kernel")
    if depth > DEEPEST:
        raise ValueError(f"kernels are nested more than {DEEPEST} deep")
    settings = dict(described)
    name = settings.pop("kernel")
    kernel = _known(name)
    if kernel is None:
        raise ValueError(
            f"there is no kernel called {name!r} here; if it is one of your own, import the module "
            "that calls `metaprior.gp.register_kernel` on it first"
        )
    names = {field.name for field in _fields(kernel)}
    if set(settings) != names:
        raise ValueError(
            f"the kernel {name} has the fields {sorted(names)}, not {sorted(settings)}"
        )
    return kernel(**{key: _value(name, key, v, depth) for key, v in settings.items()})


def as_arrays(kernel: AbstractKernel) -> AbstractKernel:
    """`kernel` with an array in place of every number, so that it can be trained and saved."""
    return jax.tree.map(jnp.asarray, kernel)


def _known(name: str) -> type[AbstractKernel] | None:
    """The kernel class that files call `name`, if there is one."""
    if name not in OWN_KERNELS and name not in _registered:
        for entry_point in entry_points(group=ENTRY_POINTS, name=name):
            register_kernel(entry_point.load())
    return OWN_KERNELS.get(name) or _registered.get(name)


def _fields(kernel: AbstractKernel | type[AbstractKernel]):
    return dataclasses.fields(kernel)  # pyright: ignore[reportArgumentType]


def _plain(kernel: str, name: str, value: Any) -> Any:
    if isinstance(value, AbstractKernel):
        return kernel_settings(value)
    if isinstance(value, str):
        return value
    number = np.asarray(value)
    if number.ndim > 1 or number.dtype.kind not in "fiub" or not np.isfinite(number).all():
        raise ValueError(
            f"{name} of {kernel} is {value!r}; give a finite number, or one per dimension."
        )
    return number.tolist()


def _value(kernel: str, name: str, value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return kernel_of(value, depth=depth + 1)
    items = value if isinstance(value, list) else [value]
    if isinstance(value, str) or all(type(item) in (int, float, bool) for item in items):
        return np.asarray(value, float) if isinstance(value, list) else value
    raise ValueError(f"{name} of the kernel {kernel} is {value!r}, which is not a number")
