"""Predictive densities and distribution functions at the values that were then observed.

Everything downstream (`log_likelihood`, `calibration_error`, `coverage`) needs only these two
numbers for each observation, so another predictive distribution replaces the Gaussian by
supplying its own.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import ndtr


def log_likelihood(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    r"""Average log density of the observations under Gaussian predictions.

    $$ \mathrm{LL} = \frac1m \sum_{j=1}^m \ln \mathcal N(y_j; \mu_j, \sigma_j^2) $$

    - `y`: the observations.
    - `mean`, `std`: $\mu$ and $\sigma$ of the prediction of each observation, in the shape of `y`;
      `std` is that of the observation, noise included.
    """
    return float(np.mean(gaussian_log_density(y, mean, std)))


def gaussian_log_density(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Float[np.ndarray, "..."]:
    r"""$\ln \mathcal N(y_j; \mu_j, \sigma_j^2)$ for each observation, in the shape of `y`.

    $$ -\tfrac12 \ln(2 \pi) - \ln \sigma_j - \tfrac12 (y_j - \mu_j)^2 / \sigma_j^2 $$
    """
    residual, std = _standardised_residual(y, mean, std)
    return -0.5 * np.log(2 * np.pi) - np.log(std) - 0.5 * residual**2


def gaussian_cdf(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Float[np.ndarray, "..."]:
    r"""$F(y_j) = \Phi((y_j - \mu_j) / \sigma_j)$ for each observation, in the shape of `y`."""
    return ndtr(_standardised_residual(y, mean, std)[0])


def _standardised_residual(
    y: ArrayLike, mean: ArrayLike, std: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """$(y - \\mu) / \\sigma$ and $\\sigma$ as arrays, after the checks."""
    y, mean, std = (np.asarray(array, dtype=float) for array in (y, mean, std))
    # Broadcasting is refused: a column beside a row would silently compare all pairs.
    if not y.shape == mean.shape == std.shape:
        raise ValueError(
            f"`y`, `mean` and `std` have the shapes {y.shape}, {mean.shape} and {std.shape}; "
            "give one mean and one std for each observation."
        )
    if y.size == 0:
        raise ValueError("`y` is empty; give at least one observation.")
    for name, array in (("y", y), ("mean", mean), ("std", std)):
        if not np.all(np.isfinite(array)):
            index = _first(~np.isfinite(array))
            raise ValueError(
                f"`{name}` is {array[index]} at index {index}; give finite numbers only."
            )
    if not np.all(std > 0):
        index = _first(std <= 0)
        raise ValueError(f"`std` is {std[index]} at index {index}; give positive numbers only.")
    return (y - mean) / std, std


def _first(where: np.ndarray) -> tuple[int, ...]:
    """The index of the first true entry."""
    return tuple(int(i) for i in np.argwhere(where)[0])
