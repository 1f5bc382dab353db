"""A prior and its files: what is written, and what can be wrong with what is read.

One file holds every array under the path of its field; `prior.json` describes them. There is no
pickle, and nothing in the files is executed: the description names a known method, and its belief
is built from the arrays.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from metaprior.belief import AbstractContents, Prior, SavedContents, belief_of
from metaprior.data import Quantity, Space, TaskFeatures, checked_bounds, direction_sign
from metaprior.files import as_path, digest_of_json
from metaprior.findings import Findings
from metaprior.store._card import model_card
from metaprior.store._files import DESCRIPTION, PriorFileError, read_files, write_files
from metaprior.store._migration import up_to_date
from metaprior.words import cut, shortened

# Everything that was learned is in standardised units, or in those of values, which have a limit.
_LARGEST = 1e150
# What is raised for JSON values of the wrong type, size or depth.
UNSUITABLE = (
    *(AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError),
    *(IndexError, ZeroDivisionError),
)


def save_prior(prior: Prior, folder: str | Path, *, replace: bool | str = True) -> Path:
    """Write `prior` to `folder`, all or nothing.

    - `replace`: whether in place of a prior that is there already, or, with the `checksum_of` a
      folder, in place of the one that was there then; else a PriorFileError.
    """
    folder = as_path(folder, "folder")
    problem = _impossible(prior.contents.arrays)
    if problem is not None:
        raise ValueError(
            f"The prior cannot be saved: {problem}; something went wrong in learning: learn it "
            "again, and check the values of the past runs."
        )
    arrays, card = save_tensors(_arrays(prior)), model_card(prior)
    write_files(folder, _description(prior), arrays, card, replace=replace)
    return folder


def digest_of(prior: Prior) -> str:
    """The SHA-256 of all that is written of a prior."""
    arrays = hashlib.sha256(save_tensors(_arrays(prior))).hexdigest()
    return digest_of_json({"arrays": arrays, **_description(prior)})


def load(folder: str | Path, *, space: Space | None = None) -> Prior:
    """The prior saved in `folder`.

    - `space`: if given, the prior must be one for this space.
    """
    folder = as_path(folder, "folder")
    files = read_files(folder)
    try:
        description = up_to_date(files.description)
        saved_space = Space.from_json(description["space"])
        direction = description["direction"]
        direction_sign(direction)
        settings = dict(description["method"])
        history_names = [_as_text(name) for name in description["history"]]
        trained_on = dict(description["trained_on"])
        found = description["findings"]
        findings = None if found is None else Findings.from_json(found)
        told = description.get("features")
        features = TaskFeatures() if told is None else TaskFeatures.from_json(told)
        limits = description.get("value_bounds")
        bounds = None if limits is None else checked_bounds(limits)
        quantity = Quantity.from_json(description.get("quantity"))
    except UNSUITABLE as error:
        raise _damaged(folder, error) from error
    if space is not None and not space.matches(saved_space):
        raise PriorFileError(
            f"The prior in {folder} is for the space {saved_space}, not for {space}; load it "
            "without `space`, or learn one for yours."
        )
    path = folder / files.arrays_name
    tensors = _tensors(path, files.arrays)
    history = {name: tensors.pop(f"history/{name}", np.zeros(0)) for name in history_names}
    problem = _impossible(tensors)
    if problem is not None:
        raise PriorFileError(
            f"{path} is damaged ({problem}); restore it from a copy or learn the prior again."
        )
    num_columns = saved_space.num_inputs + features.num_columns
    contents = _contents(path, settings, tensors, num_columns)
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
    path: Path, settings: dict[str, Any], arrays: dict[str, np.ndarray], num_columns: int
) -> AbstractContents:
    """What the files hold, checked.

    If they give a belief, they are sound. If not, the method itself is imported, which knows what
    its settings and arrays should be: it has no belief, or it finds out what is wrong.
    """
    try:
        with suppress(*UNSUITABLE), np.errstate(over="raise"):
            if belief_of(settings, arrays, num_columns) is not None:
                return SavedContents(settings, arrays, num_columns)
    except FloatingPointError as error:
        raise PriorFileError(
            f"{path} is damaged ({error}: it holds numbers that cannot have been learned); "
            "restore it from a copy or learn the prior again."
        ) from error
    from metaprior.methods import TrainedContents, UnknownMethodError, filled_surrogate, method_of

    try:
        method = method_of(settings)
    except UnknownMethodError as error:
        raise PriorFileError(
            f"Cannot load the prior in {path.parent}: {cut(str(error), 300)}."
        ) from error
    except UNSUITABLE as error:
        raise _damaged(path.parent, error) from error
    try:
        return TrainedContents(method, filled_surrogate(method, arrays, num_columns))
    except (*UNSUITABLE, MemoryError) as error:
        raise PriorFileError(
            f"{path} does not fit {DESCRIPTION}: {cut(str(error), 300)}; restore both files from "
            "one copy."
        ) from error


def _as_text(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{shortened(name)} is not a name")
    return name


def _damaged(folder: Path, error: Exception) -> PriorFileError:
    problem = cut(f"{type(error).__name__}: {error}", 300).removesuffix(".")
    return PriorFileError(
        f"{folder / DESCRIPTION} is damaged ({problem}); restore it from a copy or learn the "
        "prior again."
    )


def _description(prior: Prior) -> dict[str, Any]:
    findings = None
    if prior.findings is not None:
        # How long it took is not the same twice, and the same seed gives the same files.
        findings = replaced(prior.findings, seconds=None).to_json()
    optional: dict[str, Any] = {}
    if prior.features.names:
        optional["features"] = prior.features.to_json()
    if prior.value_bounds is not None:
        optional["value_bounds"] = list(prior.value_bounds)
    return {
        "method": dict(prior.contents.settings),
        "space": prior.space.to_json(),
        "direction": prior.direction,
        "quantity": prior.quantity.to_json(),
        "trained_on": prior.trained_on,
        "findings": findings,
        "history": list(prior.history),
        **optional,
    }


def _arrays(prior: Prior) -> dict[str, np.ndarray]:
    named = {f"history/{name}": np.array(h) for name, h in prior.history.items()}
    return {**prior.contents.arrays, **named}


def _tensors(path: Path, data: bytes) -> dict[str, np.ndarray]:
    try:
        return load_tensors(data)
    except (SafetensorError, ValueError, KeyError) as error:
        problem = cut(str(error), 300)
        raise PriorFileError(
            f"{path} cannot be read ({problem}); it is damaged, truncated or not a safetensors "
            "file: restore it from a copy or learn the prior again."
        ) from error


def _impossible(arrays: Mapping[str, np.ndarray]) -> str | None:
    """What is in the arrays and cannot have been learned, in words; `None` if nothing is."""
    for name, array in arrays.items():
        if array.dtype.kind == "f":
            sizes = np.abs(array.astype(np.float64))
            if not np.all(sizes < _LARGEST):
                return f"{name} holds {array[~(sizes < _LARGEST)].flat[0]:g}"
    return None
