"""Experiments of Ax: objects, or JSON files that a client or Ax itself has saved."""

import json
import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ax.api.client import Client
from ax.core.experiment import Experiment
from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.registry import CORE_CLASS_DECODER_REGISTRY, CORE_DECODER_REGISTRY

from metaprior.adapters.histories import paths_of, titles_of
from metaprior.words import cut

# A saved experiment, a client or an experiment.
AxSource = str | Path | Client | Experiment


def experiments_of(sources: AxSource | Iterable[AxSource]) -> tuple[dict[str, Experiment], str]:
    """The experiments by name, and what to call the source."""
    one = isinstance(sources, (str, Path, Client, Experiment))
    given: list[Any] = [sources] if one else list(sources)  # pyright: ignore
    named: list[tuple[str, Experiment]] = []
    for source in given:
        if isinstance(source, (str, Path)):
            paths = paths_of(
                source, is_one=_is_json, inside="*.json", called="a saved Ax experiment"
            )
            named += [(title, _loaded(path)) for title, path in titles_of(paths).items()]
        else:
            experiment = source._experiment if isinstance(source, Client) else source
            named.append((f"experiment {len(named)}", experiment))
    if not named:
        raise ValueError("No experiment is given; give saved experiments, clients or experiments.")
    own = [experiment._name for _, experiment in named]
    found: dict[str, Experiment] = {}
    for i, (title, experiment) in enumerate(named):
        name = own[i] if own[i] and own.count(own[i]) == 1 else title
        found[name if name not in found else f"{name} ({i})"] = experiment
    where = str(given[0]) if len(given) == 1 and isinstance(given[0], (str, Path)) else ""
    return found, where or f"{len(named)} Ax experiment{'s' if len(named) > 1 else ''}"


def _is_json(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() == ".json"


def _loaded(path: Path) -> Experiment:
    """The experiment in a file, saved by any of: `Client`, `AxClient` or `save_experiment`."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON ({error}); save the experiment again.") from None
    if isinstance(saved, dict) and isinstance(saved.get("experiment"), dict):
        saved = saved["experiment"]
    if not isinstance(saved, dict) or "search_space" not in saved:
        raise ValueError(
            f"{path} holds no Ax experiment; give a file by `client.save_to_json_file` or "
            "`save_experiment`."
        )
    try:
        with _silent():
            experiment = object_from_json(saved, CORE_DECODER_REGISTRY, CORE_CLASS_DECODER_REGISTRY)
    except Exception as error:  # Ax does not look at what it reads
        problem = cut(f"{type(error).__name__}: {error}", 200).rstrip(".")
        raise ValueError(
            f"{path} is damaged, or of another version of Ax ({problem}); save the experiment "
            "again."
        ) from None
    if not isinstance(experiment, Experiment):
        raise ValueError(f"{path} holds a {type(experiment).__name__} and no Ax experiment.")
    return experiment


@contextmanager
def _silent() -> Iterator[None]:
    """Ax's own warnings about what it once wrote, and its log, are none of the user's business."""
    logger = logging.getLogger("ax")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
