"""Compiled programs are kept in the user's cache folder, so that only the first `learn` compiles.

`METAPRIOR_CACHE` names another folder; `off`, or nothing, keeps no programs. The folder may be
deleted at any time. A cache that the user configured in JAX is left alone.
"""

from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache

from metaprior.files import cache_folder, is_writable

MOST_BYTES = 512 * 2**20


def keep_programs() -> None:
    """From now on, keep what is compiled; without a folder to write to, nothing is kept."""
    settings = jax.config.values
    if settings["jax_compilation_cache_dir"] or not settings["jax_enable_compilation_cache"]:
        return
    folder = cache_folder()
    if folder is None or not is_writable(folder):
        return
    _remove_oldest(folder)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # By default JAX keeps only what took a second to compile; the many small programs add up.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    # JAX looks for the folder once, at the first compilation, which may have happened before.
    compilation_cache.reset_cache()


def _remove_oldest(folder: Path) -> None:
    """Delete what was written longest ago until the rest takes at most `MOST_BYTES`.

    JAX can bound its cache itself, but only with a package that it does not require.
    """
    try:
        files = [(path, path.stat()) for path in folder.iterdir() if path.is_file()]
        excess = sum(found.st_size for _, found in files) - MOST_BYTES
        for path, found in sorted(files, key=lambda file: file[1].st_mtime):
            if excess <= 0:
                return
            path.unlink()
            excess -= found.st_size
    except OSError:
        return  # another process is deleting too, or the files are another user's
