r"""Which inputs a function of independent, uniform inputs depends on: functional ANOVA.

    symbol      meaning                                                          shape
    A, B        two independent sets of points                                   (N, d)
    A_B^i       the points of A with input i from B                              (N, d)
    V           variance of the function
    V_i         variance of its mean given input i: the main effect
    V_ij        variance that inputs i and j explain together and not alone
    T_i         variance left when all inputs but i are known: with all interactions of i

$$ V_i = \tfrac{1}{2} \left\langle f(B)\, [f(A_B^i) - f(A)] + f(A)\, [f(B_A^i) - f(B)]
         \right\rangle, \quad
   T_i = \tfrac{1}{2} \left\langle [f(A) - f(A_B^i)]^2 \right\rangle, $$
$$ V_{ij} = \left\langle [f(A_B^i) - f(A)]\, [f(B_A^j) - f(B)] \right\rangle $$

Pick and freeze (Saltelli 2002, with both differences of $V_{ij}$ multiplied out; Saltelli et al.
2010 for the main effects; Jansen 1999 for the totals). Each estimate is the mean of both exchanges
of A and B, over quasi-random points.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

# The function is asked at most about so many points, and at least so many of each set.
MOST_POINTS, FEWEST_POINTS = 16_384, 256
# A function whose variance is this small a part of its squared size is constant to rounding.
CONSTANT = 1e-20


class SobolIndices(NamedTuple):
    """Shares of the variance of a function; none is below 0.

    - `main`: explained by each input alone; `total`: by it and all its interactions.
    - `pairs`: by each pair of inputs beyond what both explain alone; symmetric, 0 on the diagonal.
    - `std`: of the function over its inputs.
    """

    main: Float[np.ndarray, " d"]
    total: Float[np.ndarray, " d"]
    pairs: Float[np.ndarray, "d d"]
    std: float


def sobol_indices(
    function: Callable[[Float[np.ndarray, "k d"]], Float[np.ndarray, " k"]],
    d: int,
    *,
    most_points: int = MOST_POINTS,
) -> SobolIndices | None:
    """Indices of a function of `d` inputs in the unit interval; `None` if it is constant."""
    num = max(FEWEST_POINTS, most_points // (2 * d + 2))
    u = quasi_random(num, 2 * d)
    a, b = u[:, :d], u[:, d:]
    mixed = [_exchanged(a, b, i) for i in range(d)] + [_exchanged(b, a, i) for i in range(d)]
    values = function(np.concatenate([a, b, *mixed])).reshape(2 * d + 2, num)
    f_a, f_b = values[:2] - np.mean(values[:2])
    f_ab, f_ba = np.split(values[2:] - np.mean(values[:2]), 2)
    variance = float(np.mean([f_a**2, f_b**2]))
    if not variance > CONSTANT * float(np.mean(values[:2] ** 2)):
        return None
    main = np.mean(f_b * (f_ab - f_a) + f_a * (f_ba - f_b), axis=1) / 2.0
    total = np.mean((f_a - f_ab) ** 2 + (f_b - f_ba) ** 2, axis=1) / 4.0
    together = (f_ab - f_a) @ (f_ba - f_b).T / num
    pairs = (together + together.T) / 2.0
    np.fill_diagonal(pairs, 0.0)
    shares = (np.clip(part / variance, 0.0, 1.0) for part in (main, total, pairs))
    return SobolIndices(*shares, std=float(np.sqrt(variance)))


def _exchanged(
    a: Float[np.ndarray, "n d"], b: Float[np.ndarray, "n d"], i: int
) -> Float[np.ndarray, "n d"]:
    """The points of `a` with input `i` from `b`."""
    mixed = a.copy()
    mixed[:, i] = b[:, i]
    return mixed


def quasi_random(num: int, d: int) -> Float[np.ndarray, "num d"]:
    """Points that cover the unit cube evenly: Halton's sequence, its digits shuffled in every
    dimension (Owen 2017), always the same."""
    rng = np.random.default_rng(0)
    return np.stack([_radical_inverse(num, base, rng) for base in _primes(d)], axis=1)


def _radical_inverse(num: int, base: int, rng: np.random.Generator) -> Float[np.ndarray, " num"]:
    """The first numbers of van der Corput's sequence, each digit permuted at random."""
    left, place = np.arange(num), 1.0
    found = np.zeros(num)
    while place * base > 1e-9:
        place /= base
        found += place * rng.permutation(base)[left % base]
        left = left // base
    return np.minimum(found, 1.0 - 1e-12)


def _primes(count: int) -> list[int]:
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % prime for prime in found):
            found.append(number)
        number += 1
    return found
