"""Optuna on the command line: how its storages are named, and a sentence where it is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

OPTUNA = "optuna:"


@contextmanager
def needing_optuna() -> Iterator[None]:
    """While inside, an import that fails is an error of the user's, and says what to install."""
    try:
        yield
    except ImportError as error:
        raise ValueError(str(error)) from None
