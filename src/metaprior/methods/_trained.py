"""A trained surrogate as settings and arrays, which is what files hold, and back."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import numpy as np

from metaprior.belief import AbstractContents, Settings
from metaprior.gp import float64
from metaprior.methods._method import AbstractMethod, AbstractSurrogate
from metaprior.methods._settings import settings_of


class TrainedContents(AbstractContents):
    """What a method has learned, in this process."""

    def __init__(self, method: AbstractMethod, surrogate: AbstractSurrogate):
        self._method = method
        self._surrogate = surrogate

    @property
    def settings(self) -> Settings:
        return {"name": type(self._method).__name__, **settings_of(self._method)}

    @property
    def arrays(self) -> Mapping[str, np.ndarray]:
        return self._arrays

    @property
    def method(self) -> AbstractMethod:
        return self._method

    @property
    def surrogate(self) -> AbstractSurrogate:
        return self._surrogate

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        return {path: np.array(leaf) for path, leaf in _leaves(self._surrogate)}


@float64
def filled_surrogate(
    method: AbstractMethod, arrays: Mapping[str, np.ndarray], num_columns: int
) -> AbstractSurrogate:
    """The surrogate of `method` with these arrays, each by the path of its field.

    Names, types and shapes must be those of a blank surrogate. There, an axis of length 0 stands
    for any length: it counts past runs. Of the blank surrogate only the shapes are computed, so
    that settings that would make a huge one are refused at once.
    """
    blank = eqx.filter_eval_shape(method.blank_surrogate, num_columns)
    leaves = _leaves(blank)
    expected = dict(leaves)
    for path in sorted(expected.keys() | arrays.keys()):
        if path not in expected or path not in arrays or not _fits(arrays[path], expected[path]):
            found = _form(arrays.get(path), "missing")
            wanted = _form(expected.get(path), "nothing")
            raise ValueError(f"{path} is {found} where {wanted} was expected")
    values, static = eqx.partition(blank, _is_array)
    ordered = [jax.numpy.asarray(arrays[path]) for path, _ in leaves]
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(values), ordered), static)


def _leaves(surrogate: AbstractSurrogate) -> list[tuple[str, Any]]:
    arrays = eqx.filter(surrogate, _is_array)
    return [
        (jax.tree_util.keystr(path), leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(arrays)
    ]


def _is_array(leaf: Any) -> bool:
    """Whether a leaf is an array, or the shape of one."""
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _fits(array: np.ndarray, blank: Any) -> bool:
    """Whether an array has the type and shape that `blank` wants."""
    return (
        np.dtype(array.dtype) == np.dtype(blank.dtype)
        and array.ndim == blank.ndim
        and all(b in (0, n) for n, b in zip(array.shape, blank.shape, strict=True))
    )


def _form(array: Any, absent: str) -> str:
    """Type and shape of an array, as an error names them; `absent` if there is none."""
    return absent if array is None else f"{np.dtype(array.dtype).name}{list(array.shape)}"
