"""Learn a reliable prior over functions from past optimisation runs, and optimise the next one
in far fewer evaluations."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from metaprior.belief import Posterior as Posterior
from metaprior.belief import Prior as Prior
from metaprior.bo import Best as Best
from metaprior.bo import Optimizer as Optimizer
from metaprior.data import Categorical as Categorical
from metaprior.data import Integer as Integer
from metaprior.data import Real as Real
from metaprior.data import Space as Space
from metaprior.data import Tasks as Tasks
from metaprior.learning import LearnProgress as LearnProgress
from metaprior.learning import learn as learn
from metaprior.store import PriorFileError as PriorFileError
from metaprior.store import load as load

if TYPE_CHECKING:
    from metaprior import adapters as adapters
    from metaprior import bo as bo
    from metaprior import data as data
    from metaprior import gp as gp
    from metaprior import lab as lab
    from metaprior import lifelong as lifelong
    from metaprior import methods as methods
    from metaprior import metrics as metrics
    from metaprior import processes as processes
    from metaprior import report as report

__version__ = "0.1.0"

# Imported on first use.
_MODULES = (
    "adapters",
    "bo",
    "data",
    "gp",
    "lab",
    "lifelong",
    "methods",
    "metrics",
    "processes",
    "report",
)
_NAMES = (
    "Best",
    "Categorical",
    "Integer",
    "LearnProgress",
    "Optimizer",
    "Posterior",
    "Prior",
    "PriorFileError",
    "Real",
    "Space",
    "Tasks",
    "learn",
    "load",
)
__all__ = [*_NAMES, *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"metaprior.{name}")
    raise AttributeError(f"module 'metaprior' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_NAMES, *_MODULES, "__version__"]
