r"""One number per configuration: how well it predicts held-out runs, with which calibration.

The log density, in units of the spread of all past values, is averaged over the later points of a
run, then over context sizes, then over runs. It is a proper score that one over-confident run can
ruin, but it is hardly sensitive to a prior that is slightly too wide or too narrow everywhere: the
calibration error of the pooled predictions is.
"""

import numpy as np
from jaxtyping import Float

from metaprior.learning._exam import Answers
from metaprior.metrics import calibration_error

# Log densities are clipped here: one outlier should not decide a race.
LOWEST_LOG_DENSITY = -12.0
CALIBRATION_WEIGHT = 2.0


def log_likelihood_by_run(answers: Answers, y_std: float) -> Float[np.ndarray, "entries runs"]:
    """Mean over contexts of the mean over later points; NaN for runs that do not count."""
    return _mean(_by_context(answers, y_std), axis=2)


def log_likelihood_by_context(answers: Answers, y_std: float) -> Float[np.ndarray, " contexts"]:
    """Mean over all entries and runs."""
    by_context = _by_context(answers, y_std)
    return _mean(by_context.reshape(-1, by_context.shape[2]), axis=0)


def error_by_context(answers: Answers, y_std: float) -> Float[np.ndarray, " contexts"]:
    """Root mean squared error of the mean, in units of the spread of all past values."""
    squares = np.where(answers.counts, (answers.error / y_std) ** 2, np.nan)
    by_context = _mean(squares, axis=3)
    return np.sqrt(_mean(by_context.reshape(-1, by_context.shape[2]), axis=0))


def pooled_calibration(answers: Answers) -> float:
    """Calibration error of each context size, all runs pooled; averaged over context sizes."""
    found = []
    for i in range(answers.cdf.shape[2]):
        values = answers.cdf[:, :, i][answers.counts[:, :, i]]
        if values.size:
            found.append(calibration_error(np.clip(values, 0.0, 1.0)))
    return float(np.mean(found))


def score_by_run(answers: Answers, y_std: float) -> Float[np.ndarray, " runs"]:
    """The score of each run that counts; their mean is the score of the configuration.

    The calibration error is one number for all runs. A prediction that is not finite makes all of
    it minus infinity.
    """
    fit = log_likelihood_by_run(answers, y_std)
    counted = ~np.isnan(fit)
    if not np.isfinite(answers.log_density[answers.counts]).all():
        return np.full(int(counted.sum()), -np.inf)
    return fit[counted] - CALIBRATION_WEIGHT * pooled_calibration(answers)


def part(answers: Answers, entries) -> Answers:
    """The answers of some entries."""
    return Answers(*(array[entries] for array in answers))


def _by_context(answers: Answers, y_std: float) -> Float[np.ndarray, "entries runs contexts"]:
    density = np.maximum(answers.log_density + np.log(y_std), LOWEST_LOG_DENSITY)
    return _mean(np.where(answers.counts, density, np.nan), axis=3)


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean of what is not NaN; NaN where nothing is left."""
    known = ~np.isnan(values)
    total = np.sum(np.where(known, values, 0.0), axis=axis)
    count = np.sum(known, axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def mixed(members: list[Answers]) -> Answers:
    """The equally weighted mixture of the members' predictions."""
    densities = np.stack([member.log_density for member in members])
    return Answers(
        np.logaddexp.reduce(densities, axis=0) - np.log(len(members)),
        np.mean([member.cdf for member in members], axis=0),
        np.mean([member.error for member in members], axis=0),
        members[0].counts,
    )
