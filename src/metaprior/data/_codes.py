r"""Codes of many choices: what models see of a categorical dimension with more than 32.

In the unit cube each choice has a column. The cost of a model grows with the columns that it sees,
so that it sees a code instead: choice $i$ is a word of the extended Golay code, which has 4,096
words of 24 bits, any two of which differ in 8 bits or more (Golay 1949). The words are fixed, and
the same for every dimension.

    symbol      meaning                                              shape
    n           how many choices there are                           ()
    h_i         column i of the unit cube, 1 at choice i             ()
    C           the words, one row for each choice, bits 0 and s     (n, 24)

$$ z = h^\top C, \qquad s = 6^{-1/2} $$

Two words differ in 12 bits on average: with bits of this size their squared distance is then 2, as
that of two one-hot codes, and at least 4/3.
"""

from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from metaprior.data._dimensions import Categorical, Dimension

WORD_LENGTH = 24
BIT = 6.0**-0.5
_NUM_WORDS = 4096
# x^11 + x^10 + x^6 + x^5 + x^4 + x^2 + 1 generates the code.
_GENERATOR = 0b110001110101
# An odd step visits every word, and words that differ in all columns from the start.
_STEP = 2531


@cache
def words(num_choices: int) -> Float[np.ndarray, "num_choices 24"]:
    """The code of each choice. Beyond the words of the code there are none: they repeat."""
    messages = np.arange(num_choices) * _STEP % _NUM_WORDS
    products = np.zeros(num_choices, int)
    for k in range(12):
        products ^= np.where(messages >> k & 1, _GENERATOR << k, 0)
    bits = products[:, None] >> np.arange(WORD_LENGTH - 1) & 1
    parity = bits.sum(axis=1, keepdims=True) % 2
    found = BIT * np.concatenate([bits, parity], axis=1)
    found.setflags(write=False)
    return found


class Codes:
    """The columns of a unit cube, of which models see codes of the categories with many choices.

    - `matrix`: what each column adds to what models see; columns of other dimensions stay.
    """

    def __init__(self, dimensions: tuple[Dimension, ...]):
        blocks = [_seen(dimension) for dimension in dimensions]
        heights = np.cumsum([0, *(len(block) for block in blocks)]).tolist()
        widths = np.cumsum([0, *(block.shape[1] for block in blocks)]).tolist()
        self.matrix = np.zeros((heights[-1], widths[-1]))
        for block, row, column in zip(blocks, heights, widths, strict=False):
            self.matrix[row : row + len(block), column : column + block.shape[1]] = block
        self.matrix.setflags(write=False)
        self._blocks = [
            (slice(*heights[i : i + 2]), slice(*widths[i : i + 2]), None if is_plain(d) else b)
            for i, (d, b) in enumerate(zip(dimensions, blocks, strict=True))
        ]

    @property
    def width(self) -> int:
        """The number of columns that models see."""
        return self.matrix.shape[1]

    def encode(self, unit: Any) -> Any:
        """What models see of points of the cube: from (..., num_columns) to (..., width)."""
        return unit @ self.matrix

    def decode(self, seen: Float[np.ndarray, "*k width"]) -> Float[np.ndarray, "*k num_columns"]:
        """The points: of each category the choice with the nearest word, the first one of equals.
        `decode(encode(unit))` is `unit` at valid points."""
        unit = np.zeros((*seen.shape[:-1], len(self.matrix)))
        for own, columns, code in self._blocks:
            unit[..., own] = (
                seen[..., columns] if code is None else _nearest(seen[..., columns], code)
            )
        return unit

    def usual(
        self, centre: Float[np.ndarray, " e"], scale: Float[np.ndarray, " e"]
    ) -> tuple[Float[np.ndarray, " f"], Float[np.ndarray, " f"]]:
        """Centre and scale of what models see, from those of the columns of the cube and any
        after them; NaN stays NaN."""
        d = len(self.matrix)
        found = np.full((2, self.width), np.nan)
        for own, columns, code in self._blocks:
            if code is None:
                found[:, columns] = centre[own], scale[own]
            elif np.isfinite(centre[own]).all():
                mean = code.mean(axis=0)
                found[:, columns] = mean, np.sqrt(mean * (BIT - mean))
        after = np.concatenate([[centre[d:]], [scale[d:]]])
        both = np.concatenate([found, after], axis=1)
        return both[0], both[1]

    def decode_slopes(
        self, by_unit: Float[np.ndarray, "*k num_columns"]
    ) -> Float[np.ndarray, "*k width"]:
        """Derivatives by what models see, from those by `decode`; none by a code."""
        by_seen = np.zeros((*by_unit.shape[:-1], self.width))
        for own, columns, code in self._blocks:
            if code is None:
                by_seen[..., columns] = by_unit[..., own]
        return by_seen


def codes_of(dimensions: tuple[Dimension, ...]) -> Codes | None:
    """The codes of a space; `None` where models see the columns as they are."""
    return None if all(map(is_plain, dimensions)) else Codes(dimensions)


def is_plain(dimension: Dimension) -> bool:
    """Whether models see the columns of a dimension as they are."""
    return not isinstance(dimension, Categorical) or dimension.one_hot


def _seen(dimension: Dimension) -> Float[np.ndarray, "c e"]:
    width = dimension.num_columns
    return np.eye(width) if is_plain(dimension) else words(width)


def _nearest(
    seen: Float[np.ndarray, "*k 24"], code: Float[np.ndarray, "c 24"]
) -> Float[np.ndarray, "*k c"]:
    # Squared distances, less the square of the point itself.
    squares = np.sum(code**2, axis=1) - 2.0 * (seen @ code.T)
    index: Int[np.ndarray, "*k"] = np.argmin(squares, axis=-1)
    return np.eye(len(code))[index]
