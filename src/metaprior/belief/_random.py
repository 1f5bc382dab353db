"""Random numbers that are a part of a prior: the same as JAX draws from the same key.

A hyper-posterior is used through a fixed set of draws, and rank weights are estimated from random
functions. What is drawn must not depend on which side of the library draws it, so this is JAX's
counter-based generator (Threefry-2x32, Salmon et al. 2011) with its way from bits to normals.
"""

import numpy as np
from jaxtyping import Float, Float32, UInt32

Key = UInt32[np.ndarray, "2"]
Words = UInt32[np.ndarray, "..."]

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)
# Coefficients of the polynomials, highest power first.
CENTRAL = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
TAIL = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)


def key_of(seed: int) -> Key:
    """The key that `jax.random.key(seed)` is, for seeds below 2^32."""
    return np.array([0, seed], np.uint32)


def split(key: Key, num: int = 2) -> UInt32[np.ndarray, "num 2"]:
    """Independent keys."""
    return np.stack(_counted(key, num), axis=1)


def fold_in(key: Key, number: int) -> Key:
    """A key for one of many things that are numbered."""
    high, low = threefry(key, np.zeros(1, np.uint32), np.array([number], np.uint32))
    return np.concatenate([high, low])


def normal(key: Key, num: int) -> Float[np.ndarray, " num"]:
    """Standard normals."""
    from scipy.special import erfinv  # few methods draw anything, and it is slow to import

    high, low = (words.astype(np.uint64) for words in _counted(key, num))
    bits = ((high << np.uint64(32)) | low) >> np.uint64(12)
    unit = (bits | np.uint64(0x3FF0000000000000)).view(np.float64) - 1.0
    lowest = np.nextafter(-1.0, 0.0)
    return np.sqrt(2.0) * erfinv(np.maximum(lowest, unit * (1.0 - lowest) + lowest))


def single_precision_normal(key: Key, shape: tuple[int, int]) -> Float[np.ndarray, "a b"]:
    """Standard normals drawn in single precision, up to its rounding."""
    high, low = _counted(key, shape[0] * shape[1])
    bits = (high ^ low) >> np.uint32(9)
    unit = (bits | np.uint32(0x3F800000)).view(np.float32) - np.float32(1.0)
    lowest = np.nextafter(np.float32(-1.0), np.float32(0.0))
    uniform = np.maximum(lowest, unit * (np.float32(1.0) - lowest) + lowest)
    normals = np.float32(np.sqrt(2.0)) * _single_precision_erfinv(uniform)
    return normals.astype(float).reshape(shape)


def _single_precision_erfinv(x: Float32[np.ndarray, " n"]) -> Float32[np.ndarray, " n"]:
    r"""$\operatorname{erf}^{-1}$ with the rounding of the compiler's: Giles, "Approximating the
    erfinv function", 2012, a polynomial in $w = -\ln(1 - x^2)$."""
    w = -np.log1p(-x * x)
    is_central = w < 5.0
    w = np.where(is_central, w - np.float32(2.5), np.sqrt(w) - np.float32(3.0))
    total = np.zeros_like(x)
    for central, tail in zip(CENTRAL, TAIL, strict=True):
        coefficient = np.where(is_central, np.float32(central), np.float32(tail))
        # One rounding for product and sum, as the processor does it.
        total = (coefficient + total.astype(float) * w).astype(np.float32)
    return total * x


def threefry(key: Key, high: Words, low: Words) -> tuple[Words, Words]:
    """The counters `high, low` encrypted by `key`."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ PARITY)
    with np.errstate(over="ignore"):
        a, b = high + keys[0], low + keys[1]
        for i in range(5):
            for rotation in ROTATIONS[i % 2]:
                a = a + b
                b = (b << np.uint32(rotation)) | (b >> np.uint32(32 - rotation))
                b = a ^ b
            a = a + keys[(i + 1) % 3]
            b = b + keys[(i + 2) % 3] + np.uint32(i + 1)
    return a, b


def _counted(key: Key, num: int) -> tuple[Words, Words]:
    """Random bits for the counters 0, 1, ... `num - 1`."""
    return threefry(key, np.zeros(num, np.uint32), np.arange(num, dtype=np.uint32))
