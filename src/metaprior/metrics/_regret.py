"""How far from the optimum a run stayed, and averages of such curves with their uncertainty.

The last axis is time: entry `t` belongs to the run's query `t`, counted from 0. Values are those
of the function itself, without observation noise. Nothing is clipped: a regret well below zero
says that the optimum it was measured against is wrong.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import stdtrit


def simple_regret(optimum: float | ArrayLike, values: ArrayLike) -> Float[np.ndarray, "... T"]:
    r"""Gap between optimum and best query so far: $r_t = f(x^*) - \max_{t' \le t} f(x_{t'})$.

    - `optimum`: $f(x^*)$ of each run, or one number for all of them.
    - `values`: $f(x_t)$ at the queries, time on the last axis.
    """
    best, values = _aligned(optimum, values)
    return best - np.maximum.accumulate(values, axis=-1)


def inference_regret(
    optimum: float | ArrayLike, values_at_predicted_optimum: float | ArrayLike
) -> Float[np.ndarray, "... T"]:
    r"""Gap between optimum and the model's choice: $\hat r_t = f(x^*) - f(\hat x^*_t)$.

    - `optimum`: $f(x^*)$ of each run, or one number for all of them.
    - `values_at_predicted_optimum`: $f(\hat x^*_t)$ where the model after query $t$ expects the
      optimum, time on the last axis.
    """
    best, values = _aligned(optimum, values_at_predicted_optimum)
    return best - values


def cumulative_regret(regret: ArrayLike) -> Float[np.ndarray, "... T"]:
    r"""$R_t = \sum_{t' \le t} r_{t'}$ along the last axis.

    For a lifelong sequence of runs, put the runs one after the other on that axis first.
    """
    regret = np.asarray(regret, dtype=float)
    if regret.ndim == 0:
        raise ValueError("`regret` is a single number; give an array with time on the last axis.")
    return np.cumsum(regret, axis=-1)


class MeanInterval(NamedTuple):
    """A mean and the half-width of its confidence interval: `mean - half_width` to `mean + ...`."""

    mean: np.ndarray
    half_width: np.ndarray


def mean_and_interval(
    samples: ArrayLike, axis: int | tuple[int, ...] = 0, *, confidence: float = 0.95
) -> MeanInterval:
    r"""The mean over `axis` and the half-width of Student's interval for it.

    $$ \bar s \pm t_{n-1,\,(1 + c) / 2} \; \hat\sigma / \sqrt n $$

    with $\hat\sigma$ the sample standard deviation (denominator $n - 1$) and $c$ the confidence.
    Student's quantile rather than the normal one: studies average over few seeds. The samples are
    taken as independent. One sample says nothing about its spread: the half-width is infinite.

    - `samples`: any shape.
    - `axis`: the axis or axes of independent repetitions, for example seeds and tasks.
    """
    samples = np.asarray(samples, dtype=float)
    if not 0 < confidence < 1:
        raise ValueError(f"`confidence` is {confidence}; give a number between 0 and 1.")
    if samples.size == 0:
        raise ValueError(f"`samples` is empty, its shape is {samples.shape}; give at least one.")
    mean = np.mean(samples, axis=axis)
    n = samples.size // mean.size
    if n == 1:
        return MeanInterval(mean, np.full(np.shape(mean), np.inf))
    quantile = stdtrit(n - 1, (1 + confidence) / 2)
    return MeanInterval(mean, quantile * np.std(samples, axis=axis, ddof=1) / np.sqrt(n))


def _aligned(optimum: float | ArrayLike, values: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """`optimum` with a time axis, and `values`, as arrays that fit together."""
    optimum, values = np.asarray(optimum, dtype=float), np.asarray(values, dtype=float)
    if values.ndim == 0:
        raise ValueError("The values are a single number; give an array, time on the last axis.")
    if optimum.ndim != 0 and optimum.shape != values.shape[:-1]:
        raise ValueError(
            f"`optimum` has the shape {optimum.shape} but the values have {values.shape}; "
            f"give one optimum for each run, shape {values.shape[:-1]}, or a single number."
        )
    for name, array in (("optimum", optimum), ("values", values)):
        if np.isnan(array).any():
            index = tuple(int(i) for i in np.argwhere(np.isnan(array))[0])
            raise ValueError(f"The {name} hold NaN at index {index}; give numbers only.")
    return optimum[..., None], values
