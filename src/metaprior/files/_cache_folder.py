"""Where compiled programs are kept, and whether a folder can be written to."""

import os
import sys
import tempfile
from pathlib import Path

VARIABLE = "METAPRIOR_CACHE"


def cache_folder() -> Path | None:
    """The folder for compiled programs; `None` if it is switched off or there is no home."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return None if chosen.strip().lower() in ("", "off") else Path(chosen).expanduser()
    try:
        return _user_caches() / "metaprior"
    except RuntimeError:
        return None


def _user_caches() -> Path:
    """The folder for caches of this user; raises a `RuntimeError` if there is no home folder."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    named = os.environ.get("XDG_CACHE_HOME")
    return Path(named) if named else Path.home() / ".cache"


def is_writable(folder: Path) -> bool:
    """Whether files can be made in `folder`, which is made if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
