"""The files of a saved prior, and what can be wrong with them.

A prior is a folder: `prior.safetensors` holds every array under the path of its field,
`prior.json` describes them, `README.md` is the model card. There is no pickle, and nothing in the
files is executed: the description names a known method, which rebuilds the structure.
"""

import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from metaprior.belief import Prior
from metaprior.data import Space, direction_sign
from metaprior.files import replace_folder
from metaprior.gp import float64
from metaprior.learning import Findings
from metaprior.methods import UnknownMethodError, method_of, settings_of
from metaprior.store._card import model_card
from metaprior.store._migration import from_format_1

FORMAT = "metaprior-prior"
FORMAT_VERSION = 2
ARRAYS, DESCRIPTION, CARD = "prior.safetensors", "prior.json", "README.md"
# Written beside them by `metaprior report`; removed when another prior is saved in the folder.
REPORT = "report.html"


class PriorFileError(ValueError):
    """A folder that cannot be read as a prior, with the reason and what to do."""


@float64
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


@float64
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
        method = method_of(description["method"])
        history_names = list(description["history"])
        trained_on = dict(description["trained_on"])
        found = description["findings"]
        findings = None if found is None else Findings.from_json(found)
        blank = method.blank_surrogate(saved_space.num_columns)
    except UnknownMethodError as error:
        raise PriorFileError(f"Cannot load the prior in {folder}: {error}.") from error
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        problem = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(".")
        raise PriorFileError(
            f"{folder / DESCRIPTION} is damaged ({problem}); restore it from a copy or learn the "
            "prior again."
        ) from error
    if space is not None and space != saved_space:
        raise PriorFileError(
            f"The prior in {folder} is for the space {saved_space}, not for {space}; load it "
            "without `space`, or learn one for yours."
        )
    tensors = _read_arrays(folder)
    history = {name: tensors.pop(f"history/{name}", np.zeros(0)) for name in history_names}
    surrogate = _fill(blank, tensors, folder)
    return Prior(saved_space, direction, method, surrogate, history, trained_on, findings)


def _description(prior: Prior) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "method": {"name": type(prior.method).__name__, **settings_of(prior.method)},
        "space": prior.space.to_json(),
        "direction": prior.direction,
        "trained_on": prior.trained_on,
        "findings": None if prior.findings is None else prior.findings.to_json(),
        "history": list(prior.history),
    }


def _arrays(prior: Prior) -> dict[str, np.ndarray]:
    named = {path: np.array(leaf) for path, leaf in _leaves(prior.surrogate)}
    return named | {f"history/{name}": np.array(h) for name, h in prior.history.items()}


def _leaves(surrogate) -> list[tuple[str, Any]]:
    arrays = eqx.filter(surrogate, eqx.is_array)
    return [
        (jax.tree_util.keystr(path), leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(arrays)
    ]


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


def _fill(blank, tensors: dict[str, np.ndarray], folder: Path):
    """`blank` with its arrays replaced by the saved ones of the same names, types and shapes.

    An axis of length 0 in `blank` may have any length: it counts past runs.
    """
    leaves = _leaves(blank)
    expected = dict(leaves)
    for path in sorted(expected.keys() | tensors.keys()):
        if path not in expected or path not in tensors or not _fits(tensors[path], expected[path]):
            found = _form(tensors.get(path), "missing")
            raise PriorFileError(
                f"{folder / ARRAYS} does not fit {DESCRIPTION}: {path} is {found} where "
                f"{_form(expected.get(path), 'nothing')} was expected; restore both files from "
                "one copy."
            )
    arrays, static = eqx.partition(blank, eqx.is_array)
    ordered = [jax.numpy.asarray(tensors[path]) for path, _ in leaves]
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(arrays), ordered), static)


def _fits(tensor: np.ndarray, blank) -> bool:
    """Whether a saved array has the type and shape that `blank` wants."""
    return (
        np.dtype(tensor.dtype) == np.dtype(blank.dtype)
        and tensor.ndim == blank.ndim
        and all(b in (0, t) for t, b in zip(tensor.shape, blank.shape, strict=True))
    )


def _form(array, absent: str) -> str:
    """Type and shape of an array, as an error names them; `absent` if there is none."""
    return absent if array is None else f"{np.dtype(array.dtype).name}{list(array.shape)}"
