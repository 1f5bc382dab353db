"""Replacing a file or a folder while others may read it.

A reader sees what was there before or what is there after; an error leaves what was there before.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path`, all or nothing, even through a power cut."""
    path = Path(os.path.realpath(path))  # a link stays a link
    try:
        number, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        beside = Path(name)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if path.exists():
                # Replacing a file needs the right to write to its folder only: respect its own.
                if not os.access(path, os.W_OK):
                    raise PermissionError(13, "Permission denied")
                shutil.copymode(path, beside)
            else:
                beside.chmod(0o666 & ~_umask())
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise unwriteable(path, error) from None


def replace_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make `folder` one that holds `files` and nothing else, all or nothing."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, data in files.items():
            (staging / name).write_bytes(data)
        staging.chmod(0o777 & ~_umask())
        if folder.is_dir():
            replaced = staging.with_name(staging.name + "-replaced")
            os.replace(folder, replaced)
            try:
                os.replace(staging, folder)
            except OSError:
                os.replace(replaced, folder)
                raise
            shutil.rmtree(replaced)
        else:
            os.replace(staging, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def unwriteable(path: Path, error: OSError) -> ValueError:
    """What to say of a file that could not be written."""
    reason = (error.strerror or str(error)).lower()
    return ValueError(
        f"{path} cannot be written ({reason}); nothing was changed: repair that and try again."
    )


def _sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` survive a power cut."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
