"""Learn a reliable prior over functions from past optimisation runs, and optimise the next one
in far fewer evaluations."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from metaprior import bo as bo
from metaprior import methods as methods
from metaprior._learn import learn as learn
from metaprior._prior import Posterior as Posterior
from metaprior._prior import Prior as Prior
from metaprior.bo import Best as Best
from metaprior.bo import Optimizer as Optimizer
from metaprior.data import Categorical as Categorical
from metaprior.data import Integer as Integer
from metaprior.data import Real as Real
from metaprior.data import Space as Space
from metaprior.data import Tasks as Tasks
from metaprior.learning import LearnProgress as LearnProgress
from metaprior.store import PriorFileError as PriorFileError
from metaprior.store import load as load

if TYPE_CHECKING:
    from metaprior import adapters as adapters
    from metaprior import environments as environments
    from metaprior import lifelong as lifelong
    from metaprior import metrics as metrics
    from metaprior import studies as studies
    from metaprior import tables as tables

__version__ = "0.1.0"

# Whoever loads a prior and asks it for the next point needs none of these: imported on first use.
_LAZY_MODULES = ("adapters", "environments", "lifelong", "metrics", "studies", "tables")


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        return import_module(f"metaprior.{name}")
    raise AttributeError(f"module 'metaprior' has no attribute {name!r}")
