"""`metaprior doctor`: what is installed, where things are kept, and what is wrong with that."""

import json
import os
import platform
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import typer

from metaprior.cli._terminal import say
from metaprior.words import cut

NEEDED = ("metaprior", "numpy", "scipy", "jax", "jaxlib", "equinox", "optax", "safetensors")
OPTIONAL = (
    *("optuna", "ax-platform", "botorch", "gpytorch", "torch", "scikit-learn", "mlflow"),
    *("mlflow-skinny", "wandb", "ray", "pandas", "matplotlib", "distributed"),
)
# What decides on how many threads and devices the work is done.
VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "XLA_FLAGS"),
    *("JAX_PLATFORMS", "JAX_COMPILATION_CACHE_DIR", "METAPRIOR_CACHE", "CUDA_VISIBLE_DEVICES"),
)
# It deadlocks on the CPU, in trainings side by side.
_BAD_JAX = "0.10."


def run_doctor(*, gpu: bool, as_json: bool) -> None:
    """Print what was found, and what is wrong with it."""
    found = examined(gpu=gpu)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    for title, part in found.items():
        if isinstance(part, dict):
            say(f"{title}:")
            for name, value in part.items():
                say(f"  {name}: {_in_words(value)}")
    problems = found["problems"]
    say("\n".join(f"Problem: {each}" for each in problems) or "Nothing is wrong.")


def examined(*, gpu: bool) -> dict[str, Any]:
    """Everything that `doctor` shows."""
    packages = {name: installed(name) for name in NEEDED}
    found = {
        "system": {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "processors": os.cpu_count(),
        },
        "packages": packages,
        "hosts": {name: version for name in OPTIONAL if (version := installed(name))},
        "compiled programs": _cache(),
        "folders": {
            "here": {"folder": str(Path.cwd()), "writable": _can_write(Path.cwd())},
            "temporary": {"folder": tempfile.gettempdir(), "writable": True},
        },
        "environment": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }
    if gpu:
        found["devices"] = _devices()
    return {**found, "problems": _problems(found)}


def installed(name: str) -> str | None:
    """The version of a package, from its metadata: it is not imported. `None` without one."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cache() -> dict[str, Any]:
    from metaprior.files import cache_folder

    chosen = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    folder = Path(chosen) if chosen else cache_folder()
    if folder is None:
        return {"folder": None, "bytes": 0, "writable": False}
    return {"folder": str(folder), "bytes": _size(folder), "writable": _can_write(folder)}


def _size(folder: Path) -> int:
    try:
        return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    except OSError:  # there is none yet, or another process deletes what it holds
        return 0


def _can_write(folder: Path) -> bool:
    """Whether files can be made in the folder, or in the one where it would be made."""
    from metaprior.files import is_writable

    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    return is_writable(there)


def _devices() -> dict[str, Any]:
    import jax

    try:
        return {str(device): device.device_kind for device in jax.devices()}
    except RuntimeError as error:
        return {"none": cut(str(error), 300)}


def _problems(found: dict[str, Any]) -> list[str]:
    problems = [
        f"{name} is not installed; install it with `pip install {name}`."
        for name, version in found["packages"].items()
        if version is None
    ]
    if str(found["packages"]["jax"]).startswith(_BAD_JAX):
        problems.append("JAX 0.10 can deadlock while training; install another version of it.")
    cache = found["compiled programs"]
    if cache["folder"] is not None and not cache["writable"]:
        problems.append(
            f"Compiled programs cannot be kept in {cache['folder']}, so every `learn` compiles "
            "anew; name another folder in METAPRIOR_CACHE."
        )
    if not found["folders"]["here"]["writable"]:
        problems.append("Nothing can be written in this folder; give another one with --out.")
    if "none" in found.get("devices", {}):
        problems.append(f"JAX sees no device: {found['devices']['none']}")
    return problems


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(each)}" for name, each in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
