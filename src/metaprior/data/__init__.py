"""History: spaces, runs, sets of runs and their standardisation; `csv` reads them from files."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from metaprior.data._dimensions import Choice as Choice
from metaprior.data._dimensions import Dimension as Dimension
from metaprior.data._features import Feature as Feature
from metaprior.data._features import Features as Features
from metaprior.data._features import FeatureValue as FeatureValue
from metaprior.data._features import TaskFeatures as TaskFeatures
from metaprior.data._features import checked_features as checked_features
from metaprior.data._features import features_of as features_of
from metaprior.data._outputs import CONSTRAINT as CONSTRAINT
from metaprior.data._outputs import Outputs as Outputs
from metaprior.data._outputs import require_roles as require_roles
from metaprior.data._points import Column as Column
from metaprior.data._points import Complaint as Complaint
from metaprior.data._points import Points as Points
from metaprior.data._points import as_native as as_native
from metaprior.data._points import checked_seed as checked_seed
from metaprior.data._points import complaint as complaint
from metaprior.data._quantity import Quantity as Quantity
from metaprior.data._space import Categorical as Categorical
from metaprior.data._space import Integer as Integer
from metaprior.data._space import Real as Real
from metaprior.data._space import Space as Space
from metaprior.data._tasks import LARGEST_VALUE as LARGEST_VALUE
from metaprior.data._tasks import Bounds as Bounds
from metaprior.data._tasks import Tasks as Tasks
from metaprior.data._tasks import checked_bounds as checked_bounds
from metaprior.data._tasks import direction_sign as direction_sign
from metaprior.data._tasks import padded_length as padded_length
from metaprior.data._tasks import require_within as require_within

if TYPE_CHECKING:
    from metaprior.data import csv as csv
    from metaprior.data._runs import Choices as Choices
    from metaprior.data._runs import Run as Run
    from metaprior.data._runs import canonical_order as canonical_order
    from metaprior.data._runs import empty_run as empty_run
    from metaprior.data._runs import run_of as run_of
    from metaprior.data._standardise import Standardiser as Standardiser
    from metaprior.data._standardise import blank_standardiser as blank_standardiser
    from metaprior.data._standardise import fit_standardiser as fit_standardiser

# Buffers of compiled code: imported on first use, since they import JAX.
_COMPILED = {
    "Choices": "_runs",
    "Run": "_runs",
    "Standardiser": "_standardise",
    "blank_standardiser": "_standardise",
    "canonical_order": "_runs",
    "empty_run": "_runs",
    "fit_standardiser": "_standardise",
    "run_of": "_runs",
}


def __getattr__(name: str) -> Any:
    if name in _COMPILED:
        return getattr(import_module(f"metaprior.data.{_COMPILED[name]}"), name)
    if name == "csv":  # on first use: most callers have no files
        return import_module("metaprior.data.csv")
    raise AttributeError(f"module 'metaprior.data' has no attribute {name!r}")
