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
from metaprior.words import listed

# The prefix of an Optuna storage.
OPTUNA = "optuna:"
# A single letter is a drive.
_NAME = re.compile(r"[A-Za-z]{2,}")


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
    scheme, colon, rest = source.partition(":")
    if colon and scheme in HOSTS:
        return HOSTS[scheme], rest
    # What follows is never shown: it may hold a password.
    if "://" in source:
        start = source.partition("://")[0]
        raise ValueError(
            f"A source that begins with {start}:// is not a CSV file; write the host before it, as "
            f"in optuna:{start}://..."
        )
    if colon and _NAME.fullmatch(scheme) and not Path(source).exists():
        prefixes = listed([f"{name}:" for name in HOSTS], len(HOSTS))
        raise ValueError(
            f"A source that begins with {scheme}: is not a CSV file; give CSV files, or a source "
            f"that begins with one of {prefixes}."
        )
    return None, source
