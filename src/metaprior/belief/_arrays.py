"""Arrays of a prior by the path of their field, checked as they are taken.

Every array here has a leading axis that counts members: of length 1, or of an ensemble.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from metaprior.belief._maps import StackedNetwork


class StackedArrays:
    """Arrays by path; each is taken once."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self._arrays = arrays

    def has(self, path: str) -> bool:
        """Whether there is an array at `path`."""
        return path in self._arrays

    def under(self, prefix: str) -> "StackedArrays":
        """The arrays whose path begins with `prefix`, without it; they are taken from here."""
        inside = [path for path in self._arrays if path.startswith(prefix)]
        return StackedArrays({p.removeprefix(prefix): self._arrays.pop(p) for p in inside})

    def members(self) -> "StackedArrays":
        """The arrays of an ensemble, whose own first axis becomes the leading one."""
        return StackedArrays({path: array[0] for path, array in self._arrays.items()})

    def require_members(self, num: int) -> None:
        """Raise unless there are arrays of that many members."""
        for path, array in self._arrays.items():
            if len(array) != num:
                raise ValueError(f"{path} has {len(array)} members where {num} were expected")

    def take(self, path: str, *shape: int | None, dtype: Any = np.float64) -> np.ndarray:
        """The array at `path`, of that shape after the leading axis; `None` fits any length."""
        array = self._arrays.pop(path, None)
        expected = f"{np.dtype(dtype).name}{['any' if n is None else n for n in shape]}"
        if array is None:
            raise ValueError(f"{path} is missing where {expected} was expected")
        own = array.shape[1:]
        fits = len(own) == len(shape) and all(
            n in (None, m) for n, m in zip(shape, own, strict=True)
        )
        if array.dtype != dtype or not fits:
            found = f"{array.dtype.name}{list(own)}"
            raise ValueError(f"{path} is {found} where {expected} was expected")
        return array

    def take_number(self, path: str) -> Float[np.ndarray, " g"]:
        """The number at `path`, which may have been written as an integer."""
        self._as_float(path)
        return self.take(path)

    def take_numbers(self, path: str, dimension: int) -> Float[np.ndarray, "g _"]:
        """One number for all dimensions, or one for each."""
        self._as_float(path)
        array = self._arrays.get(path)
        if array is not None and array.ndim == 1:
            return self.take(path)[:, None]
        return self.take(path, dimension)

    def network(
        self, prefix: str, num_inputs: int, num_outputs: int | None, *, ends_bent: bool = False
    ) -> StackedNetwork:
        """The network whose layers are at `prefix`."""
        weights, biases = [], []
        width, num_layers = num_inputs, self._num_layers(prefix)
        for i in range(num_layers):
            rows = num_outputs if i == num_layers - 1 else None
            weights.append(self.take(f"{prefix}.layers[{i}].weight", rows, width))
            width = weights[-1].shape[1]
            biases.append(self.take(f"{prefix}.layers[{i}].bias", width))
        return StackedNetwork(tuple(weights), tuple(biases), ends_bent)

    def shifted(
        self, paths: Sequence[str], shifts: Float[np.ndarray, "g num p"]
    ) -> "StackedArrays":
        """All arrays moved: those at `paths`, flattened one after another, by each of the shifts.

        The shifts of a member become members of their own. Integers are no parameters.
        """
        moved, at = {}, 0
        for path in paths:
            array = self._arrays.pop(path, None)
            if array is None:
                raise ValueError(f"{path} is missing where a parameter was expected")
            repeated = np.repeat(array[:, None], shifts.shape[1], axis=1)
            if array.dtype.kind == "f":
                size = int(np.prod(array.shape[1:]))
                repeated = repeated + shifts[:, :, at : at + size].reshape(repeated.shape)
                at += size
            moved[path] = repeated.reshape(-1, *array.shape[1:])
        self.require_none_left()
        if at != shifts.shape[2]:
            raise ValueError(f"{shifts.shape[2]} parameters are described where {at} were expected")
        return StackedArrays(moved)

    def layer_paths(self, prefix: str) -> list[str]:
        """The paths of a network's arrays, in the order of its parameters."""
        layers = range(self._num_layers(prefix))
        return [f"{prefix}.layers[{i}].{name}" for i in layers for name in ("weight", "bias")]

    def repeated(self, num: int) -> "StackedArrays":
        """Every member `num` times; the arrays are taken from here."""
        taken = self.under("")
        return StackedArrays({p: np.repeat(a, num, axis=0) for p, a in taken._arrays.items()})

    def require_none_left(self) -> None:
        """Raise if there are arrays that nothing has asked for."""
        if self._arrays:
            raise ValueError(f"{min(self._arrays)} is there where nothing was expected")

    def _as_float(self, path: str) -> None:
        array = self._arrays.get(path)
        if array is not None and array.dtype.kind == "i":
            self._arrays[path] = array.astype(float)

    def _num_layers(self, prefix: str) -> int:
        count = 0
        while self.has(f"{prefix}.layers[{count}].weight"):
            count += 1
        if count == 0:
            raise ValueError(f"{prefix}.layers[0].weight is missing where a network was expected")
        return count
