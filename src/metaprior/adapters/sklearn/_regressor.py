"""A learned prior as scikit-learn's estimators are: fit, predict, score."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from metaprior.belief import AveragedBelief, ConditionedBelief, Prior
from metaprior.data import Features


class PriorRegressor(RegressorMixin, BaseEstimator):
    """Gaussian-process regression that starts from a learned prior.

    `fit` conditions the prior on one run: the prior stays as it is, and no search for
    hyper-parameters is made. Before `fit`, `predict` says what the prior expects of any run.

    - `prior`: the prior; `None` for a non-transfer Gaussian process, averaged over its
      hyper-parameters, on data of any width.
    - `features`: features of the task: see `Prior.for_task`.

    `X` has a column per dimension of the prior's space, in the user's units: an array in the order
    of the space's names, or a data frame with these names.
    """

    prior: Prior | None
    features: Features | None

    # scikit-learn asks of constructors that they store whatever they are given.
    def __init__(self, prior: Any = None, features: Any = None):
        self.prior = prior
        self.features = features

    def fit(self, X: Any, y: Any) -> "PriorRegressor":
        """Condition on a run with values `y`, in the user's units, at `X`."""
        if self.prior is None:
            X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
            self.posterior_ = unlearned_posterior(X, np.asarray(y, float))
        else:
            X = _dense(X)
            _require_some(X)
            validate_data(self, X, y, skip_check_array=True)
            y = column_or_1d(y, warn=True)
            self.posterior_ = self._learned.condition(X, y, features=self.features)
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Mean of the function at `X`, (n,), and on demand its standard deviation or covariance.

        Both are of the function, without noise, as those of `GaussianProcessRegressor`.
        """
        if return_std and return_cov:
            raise ValueError(
                "Both return_std and return_cov are set; ask for one: the diagonal of the "
                "covariance is the squared standard deviation."
            )
        posterior, X = self._asked(X)
        mean, std = posterior.predict(X, noiseless=True)
        if return_std:
            return mean, std
        return (mean, posterior.covariance(X)) if return_cov else mean

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0
    ) -> Float[np.ndarray, "n num"]:
        """Joint samples of the function at `X`, one per column."""
        posterior, X = self._asked(X)
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        return posterior.sample(X, n_samples, seed=seed).T

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # A learned prior has expectations before it has seen anything.
        tags.requires_fit = self.prior is None
        return tags

    @property
    def _learned(self) -> Prior:
        if not isinstance(self.prior, Prior):
            raise TypeError(
                f"The prior of a PriorRegressor is {self.prior!r}; give a prior, such as "
                "`metaprior.load('prior/')`."
            )
        return self.prior

    def _asked(self, X: Any) -> tuple[Any, Any]:
        """The posterior, and the points as it takes them."""
        if self.prior is None:
            check_is_fitted(self)
            return self.posterior_, validate_data(self, X, dtype=np.float64, reset=False)
        X = _dense(X)
        if not hasattr(self, "posterior_"):
            return self._learned.condition([], [], features=self.features), X
        validate_data(self, X, reset=False, skip_check_array=True)
        return self.posterior_, X


def _dense(X: Any) -> Any:
    """Array-likes as arrays; lists as they are, and data frames, which have names."""
    if issparse(X):
        raise TypeError(
            "Sparse data was passed for X, and a learned prior needs dense data; give "
            "`X.toarray()`."
        )
    return np.asarray(X) if hasattr(X, "__array__") and not hasattr(X, "columns") else X


def _require_some(X: Any) -> None:
    """Raise, in the words that scikit-learn expects, for an array without rows or columns."""
    shape = X.shape if hasattr(X, "shape") else (len(X),)
    for axis, what in enumerate(("sample", "feature")):
        if len(shape) > axis and shape[axis] == 0:
            raise ValueError(
                f"X has 0 {what}(s) (shape={shape}) while a minimum of 1 is required; before the "
                "first observation, call `predict` without `fit`."
            )


@dataclass(frozen=True)
class UnlearnedPosterior:
    """The averaged GP after a run, with what `metaprior.Posterior` offers; inputs are in units of
    the range of the run."""

    belief: ConditionedBelief
    low: Float[np.ndarray, " d"]
    width: Float[np.ndarray, " d"]

    def predict(
        self, X: Float[np.ndarray, "m d"], *, noiseless: bool
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Mean and standard deviation of the function, or of an observation."""
        moments = self.belief.moments(self._unit(X))
        return moments.mean, np.sqrt(moments.function_variance if noiseless else moments.variance)

    def covariance(self, X: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m m"]:
        """Joint covariance of the function."""
        return self.belief.covariance(self._unit(X))

    def sample(
        self, X: Float[np.ndarray, "m d"], num: int, *, seed: int
    ) -> Float[np.ndarray, "num m"]:
        """Joint samples of the function."""
        return self.belief.sample(self._unit(X), num, np.random.default_rng(seed))

    def _unit(self, X: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m d"]:
        return (X - self.low) / self.width


def unlearned_posterior(
    X: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]
) -> UnlearnedPosterior:
    """The averaged GP after a run, of which it takes all units."""
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    std = float(y.std())
    belief = AveragedBelief(float(y.mean()), std if std > 0.0 else 1.0)
    return UnlearnedPosterior(belief.condition((X - low) / width, y), low, width)
