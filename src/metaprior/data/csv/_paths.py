"""Which files are meant: by name, by folder, or by a pattern that no shell has expanded."""

import glob
import os
from collections.abc import Iterable
from pathlib import Path


def csv_files(sources: str | Path | Iterable[str | Path]) -> list[Path]:
    """The files that `sources` name, each once, in the order given.

    - `sources`: files, folders (all `*.csv` in them, sorted) and patterns such as `"runs/*.csv"`.
    """
    if isinstance(sources, (str, Path)):
        sources = [sources]
    files: dict[str, Path] = {}
    for source in sources:
        for path in _files_of(Path(source)):
            files.setdefault(os.path.abspath(path), path)
    if not files:
        raise ValueError("Received no files of past runs; name at least one CSV file.")
    return list(files.values())


def _files_of(source: Path) -> list[Path]:
    if source.is_dir():
        found = sorted(path for path in source.iterdir() if _is_csv(path))
        if not found:
            raise ValueError(
                f"There is no CSV file in the folder {source}; name a folder that holds *.csv."
            )
        return found
    # A file whose name happens to look like a pattern is that file.
    if glob.has_magic(str(source)) and not source.exists():
        found = [Path(match) for match in sorted(glob.glob(str(source), recursive=True))]
        found = [path for path in found if not path.is_dir()]
        if not found:
            raise ValueError(f"No file matches {source}; check the pattern.")
        return found
    return [source]


def _is_csv(path: Path) -> bool:
    # Names with a dot in front are locks and previews that other programs leave.
    return path.suffix.lower() == ".csv" and not path.name.startswith(".") and path.is_file()
