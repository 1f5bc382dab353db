"""Other people's tools: each adapter is imported on first use, and needs its host only then."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from metaprior.adapters._address import require_one_at as require_one_at
from metaprior.adapters._address import shown_address as shown_address
from metaprior.adapters._address import without_secrets as without_secrets
from metaprior.adapters._host import StudyUse as StudyUse
from metaprior.adapters._host import require_host as require_host
from metaprior.adapters._packed import as_text as as_text
from metaprior.adapters._packed import from_text as from_text
from metaprior.adapters._packed import pack as pack
from metaprior.adapters._packed import unpack as unpack

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
