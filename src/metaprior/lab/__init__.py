"""The paper: environments, studies, their figures and the demo. The library does not import it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metaprior.lab import demo as demo
    from metaprior.lab import environments as environments
    from metaprior.lab import plots as plots
    from metaprior.lab import policies as policies
    from metaprior.lab import studies as studies

_MODULES = ("demo", "environments", "plots", "policies", "studies")
__all__ = ["demo", "environments", "plots", "policies", "studies"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"metaprior.lab.{name}")
    raise AttributeError(f"module 'metaprior.lab' has no attribute {name!r}")
