"""The files of a saved prior, and what can be wrong with them.

A prior is a folder: `prior.safetensors` holds every array under the path of its field,
`prior.json` describes them, `README.md` is the model card. There is no pickle, and nothing in the
files is executed: the description names a known method, and its belief is built from the arrays.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from metaprior.belief import AbstractContents, Prior, SavedContents, belief_of
from metaprior.data import Quantity, Space, TaskFeatures, checked_bounds, direction_sign
from metaprior.files import replace_folder
from metaprior.findings import Findings
from metaprior.store._card import model_card
from metaprior.store._migration import from_format_1

FORMAT = "metaprior-prior"
FORMAT_VERSION = 2
ARRAYS, DESCRIPTION, CARD = "prior.safetensors", "prior.json", "README.md"
# Written beside them by `metaprior report`; removed when another prior is saved in the folder.
REPORT = "report.html"


class PriorFileError(ValueError):
    """A folder that cannot be read as a prior, with the reason and what to do."""


def save_prior(prior: Prior, folder: str | Path) -> Path:
    """Write `prior` to `folder`, all or nothing; an earlier prior there is replaced."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise PriorFileError(f"Cannot save a prior to {folder}: it is a file; name a folder.")
    held = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if held - {ARRAYS, DESCRIPTION, CARD, REPORT} or (held and DESCRIPTION not in held):
        raise PriorFileError(
            f"Cannot save a prior to {folder}: it holds files that are not part of a prior; "
            "name an empty or a new folder."
        )
    replace_folder(
        folder,
        {
            ARRAYS: save_tensors(_arrays(prior)),
            DESCRIPTION: (json.dumps(_description(prior), indent=2) + "\n").encode(),
            CARD: model_card(prior).encode(),
        },
    )
    return folder


def load(folder: str | Path, *, space: Space | None = None) -> Prior:
    """The prior saved in `folder`.

    - `space`: if given, the prior must be one for this space.
    """
    folder = Path(folder)
    description = _read_description(folder)
    try:
        if description["format_version"] == 1:
            description = from_format_1(description)
        saved_space = Space.from_json(description["space"])
        direction = description["direction"]
        direction_sign(direction)
        settings = dict(description["method"])
        history_names = list(description["history"])
        trained_on = dict(description["trained_on"])
        found = description["findings"]
        findings = None if found is None else Findings.from_json(found)
        told = description.get("features")
        features = TaskFeatures() if told is None else TaskFeatures.from_json(told)
        limits = description.get("value_bounds")
        bounds = None if limits is None else checked_bounds(limits)
        quantity = Quantity.from_json(description.get("quantity"))
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise _damaged(folder, error) from error
    if space is not None and space != saved_space:
        raise PriorFileError(
            f"The prior in {folder} is for the space {saved_space}, not for {space}; load it "
            "without `space`, or learn one for yours."
        )
    tensors = _read_arrays(folder)
    history = {name: tensors.pop(f"history/{name}", np.zeros(0)) for name in history_names}
    num_columns = saved_space.num_inputs + features.num_columns
    contents = _contents(folder, settings, tensors, num_columns)
    return Prior(
        saved_space,
        direction,
        contents,
        history,
        trained_on,
        findings,
        features,
        bounds,
        quantity=quantity,
    )


def _contents(
    folder: Path, settings: dict[str, Any], arrays: dict[str, np.ndarray], num_columns: int
) -> AbstractContents:
    """What the files hold, checked.

    If they give a belief, they are sound. If not, the method itself is imported, which knows what
    its settings and arrays should be: it has no belief, or it finds out what is wrong.
    """
    with suppress(AttributeError, KeyError, TypeError, ValueError):
        if belief_of(settings, arrays, num_columns) is not None:
            return SavedContents(settings, arrays, num_columns)
    from metaprior.methods import TrainedContents, UnknownMethodError, filled_surrogate, method_of

    try:
        method = method_of(settings)
    except UnknownMethodError as error:
        raise PriorFileError(f"Cannot load the prior in {folder}: {error}.") from error
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise _damaged(folder, error) from error
    try:
        return TrainedContents(method, filled_surrogate(method, arrays, num_columns))
    except ValueError as error:
        raise PriorFileError(
            f"{folder / ARRAYS} does not fit {DESCRIPTION}: {error}; restore both files from one "
            "copy."
        ) from error


def _damaged(folder: Path, error: Exception) -> PriorFileError:
    problem = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(".")
    return PriorFileError(
        f"{folder / DESCRIPTION} is damaged ({problem}); restore it from a copy or learn the "
        "prior again."
    )


def _description(prior: Prior) -> dict[str, Any]:
    optional: dict[str, Any] = {}
    if prior.features.names:
        optional["features"] = prior.features.to_json()
    if prior.value_bounds is not None:
        optional["value_bounds"] = list(prior.value_bounds)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "method": dict(prior.contents.settings),
        "space": prior.space.to_json(),
        "direction": prior.direction,
        "quantity": prior.quantity.to_json(),
        "trained_on": prior.trained_on,
        "findings": None if prior.findings is None else prior.findings.to_json(),
        "history": list(prior.history),
        **optional,
    }


def _arrays(prior: Prior) -> dict[str, np.ndarray]:
    named = {f"history/{name}": np.array(h) for name, h in prior.history.items()}
    return {**prior.contents.arrays, **named}


def _read_description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    if not path.is_file():
        raise PriorFileError(
            f"There is no prior in {folder}: {DESCRIPTION} is missing; give the folder that "
            "`prior.save` wrote."
        )
    try:
        description = json.loads(path.read_text())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise PriorFileError(
            f"{path} is not valid JSON ({error}); it is damaged or truncated: restore it from a "
            "copy or learn the prior again."
        ) from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise PriorFileError(f"{path} was not written by metaprior; give a folder that was.")
    version = description.get("format_version")
    if version not in (1, FORMAT_VERSION):
        raise PriorFileError(
            f"{path} has format version {version!r}, and this metaprior reads versions up to "
            f"{FORMAT_VERSION}; upgrade metaprior, or learn the prior again with this one."
        )
    return description


def _read_arrays(folder: Path) -> dict[str, np.ndarray]:
    path = folder / ARRAYS
    if not path.is_file():
        raise PriorFileError(f"{path} is missing; restore it from a copy or learn the prior again.")
    try:
        return load_tensors(path.read_bytes())
    except (SafetensorError, ValueError, KeyError) as error:
        raise PriorFileError(
            f"{path} cannot be read ({error}); it is damaged, truncated or not a safetensors "
            "file: restore it from a copy or learn the prior again."
        ) from error
