"""scikit-learn: a learned prior as a regressor."""

# ruff: noqa: E402 (nothing below can be imported without scikit-learn)

from metaprior.adapters import require_host

require_host("sklearn", called="scikit-learn", extra="sklearn", oldest=1)

from metaprior.adapters.sklearn._regressor import PriorRegressor as PriorRegressor
