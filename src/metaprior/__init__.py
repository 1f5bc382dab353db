"""Learn a reliable prior over functions from past optimisation runs, and optimise the next one
in far fewer evaluations."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    from metaprior.belief import Posterior as Posterior
    from metaprior.belief import Prior as Prior
    from metaprior.belief import Priors as Priors
    from metaprior.bo import Best as Best
    from metaprior.bo import MultiOptimizer as MultiOptimizer
    from metaprior.bo import Optimizer as Optimizer
    from metaprior.bo import Outcome as Outcome
    from metaprior.data import Categorical as Categorical
    from metaprior.data import Integer as Integer
    from metaprior.data import Outputs as Outputs
    from metaprior.data import Real as Real
    from metaprior.data import Space as Space
    from metaprior.data import Tasks as Tasks
    from metaprior.learning import LearnProgress as LearnProgress
    from metaprior.learning import learn as learn
    from metaprior.learning import learn_outputs as learn_outputs
    from metaprior.store import PriorFileError as PriorFileError
    from metaprior.store import load as load
    from metaprior.store import load_priors as load_priors

__version__ = "0.1.0"

# JAX reads it when it is loaded. Without it, every program that comes out of the cache takes
# preferences of the compiler for features that this machine lacks, and says so at length.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Everything is imported on first use: learning needs JAX, asking does not.
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
_NAMES = {
    "Best": "bo",
    "Categorical": "data",
    "Integer": "data",
    "LearnProgress": "learning",
    "MultiOptimizer": "bo",
    "Optimizer": "bo",
    "Outcome": "bo",
    "Outputs": "data",
    "Posterior": "belief",
    "Prior": "belief",
    "Priors": "belief",
    "PriorFileError": "store",
    "Real": "data",
    "Space": "data",
    "Tasks": "data",
    "learn": "learning",
    "learn_outputs": "learning",
    "load": "store",
    "load_priors": "store",
}
__all__ = [*_NAMES, *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"metaprior.{name}")
    if name in _NAMES:
        return getattr(import_module(f"metaprior.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'metaprior' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_NAMES, *_MODULES, "__version__"]
