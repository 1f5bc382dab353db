"""Modules of the optional extra `study`, imported when a study first needs them."""

from importlib import import_module
from typing import Any


def import_extra(name: str) -> Any:
    """The module `name`, or one sentence on how to get it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"Studies need {name.split('.')[0]}, which cannot be imported ({error}); install it "
            "with `pip install 'metaprior[study]'`."
        ) from error
