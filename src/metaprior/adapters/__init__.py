"""Other people's tools: each adapter is imported on first use, and needs its host only then."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from metaprior.adapters._host import StudyUse as StudyUse

if TYPE_CHECKING:
    from metaprior.adapters import ax as ax
    from metaprior.adapters import botorch as botorch
    from metaprior.adapters import mlflow as mlflow
    from metaprior.adapters import optuna as optuna
    from metaprior.adapters import ray as ray
    from metaprior.adapters import sklearn as sklearn
    from metaprior.adapters import wandb as wandb

_ADAPTERS = ("ax", "botorch", "mlflow", "optuna", "ray", "sklearn", "wandb")


def __getattr__(name: str) -> Any:
    if name in _ADAPTERS:
        return import_module(f"metaprior.adapters.{name}")
    raise AttributeError(f"module 'metaprior.adapters' has no attribute {name!r}")
