"""The hosts whose past runs `metaprior learn` reads, by the prefix of a source."""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from metaprior.cli._errors import needing_host

# The prefix of an Optuna storage.
OPTUNA = "optuna:"
_PREFIX = re.compile(r"([a-z][a-z0-9+]+):")


@contextmanager
def _silent() -> Iterator[None]:
    """The log of a host goes to standard error, where only our own sentences belong."""
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


class Host(NamedTuple):
    """Where past runs may be kept.

    - `name`: of the adapter, and the prefix of a source; `source`: what one is, in words.
    - `options`: those that its reader takes beside what all readers take.
    - `several`: whether it may be several sources.
    """

    name: str
    source: str
    options: frozenset[str] = frozenset()
    several: bool = False

    def read(self, sources: list[str], **options: Any) -> Any:
        """The past runs of the sources; a host that is not installed is bad input."""
        with _silent():
            with needing_host():
                adapter = import_module(f"metaprior.adapters.{self.name}")
            return adapter.read_history(sources if self.several else sources[0], **options)


# What readers of runs take that know neither a search space nor what is to be optimised.
_LOGGED = frozenset({"metric", "task", "ignore"})
HOSTS = {
    host.name: host
    for host in (
        Host("optuna", "an Optuna storage"),
        Host("mlflow", "an MLflow store", _LOGGED),
        Host("wandb", "W&B exports", _LOGGED, several=True),
        Host("ray", "Ray Tune folders", _LOGGED, several=True),
        Host("ax", "Ax experiments", frozenset({"metric"}), several=True),
    )
}


def split(source: str) -> tuple[Host | None, str]:
    """The host of a source and what is behind the prefix; no host for CSV files."""
    found = _PREFIX.match(source)
    if found and found[1] in HOSTS:
        return HOSTS[found[1]], source[found.end() :]
    if found and not Path(source).exists():
        # Not shown as a whole: it may hold a password.
        prefixes = ", ".join(f"{name}:" for name in HOSTS)
        hint = (
            f"for the database of a host, write its name before it, as in optuna:{found[1]}://..."
            if "://" in source
            else f"give CSV files, or a source that begins with one of {prefixes}"
        )
        raise ValueError(
            f"A source that begins with {found[0]}{'//' if '://' in source else ''} is not a CSV "
            f"file; {hint}."
        )
    return None, source
