"""Files and folders that a user has named: by path, by folder or by pattern."""

from collections.abc import Callable, Iterable
from glob import glob, has_magic
from os.path import expanduser
from pathlib import Path

# What may be given where files are read from.
Sources = str | Path | Iterable[str | Path]


def paths_of(
    sources: Sources, *, is_one: Callable[[Path], bool], inside: str, called: str
) -> list[Path]:
    """The files or folders that the sources stand for, each of them once, in order.

    - `is_one`: whether a path is what is looked for; other folders are searched for it.
    - `inside`: the pattern of what is looked for in a folder.
    - `called`: what is looked for, as in "no file of an Ax experiment".
    """
    given = [sources] if isinstance(sources, (str, Path)) else list(sources)
    if not given:
        raise ValueError(f"No source is given; give the path of {called}.")
    found: dict[Path, None] = {}
    for source in (expanduser(each) for each in map(str, given)):
        here = sorted(map(Path, glob(source))) if has_magic(source) else [Path(source)]
        here = [path for path in here if path.exists()]
        if not here:
            raise ValueError(f"There is no {source}; give the path of {called}.")
        if here[0].is_file() and not is_one(here[0]):
            raise ValueError(f"{here[0]} is a file; give the path of {called}.")
        ones = [each for path in here for each in _ones(path, is_one, inside)]
        if not ones:
            raise ValueError(f"There is no {called.partition(' ')[2]} in {source}; check the path.")
        found |= dict.fromkeys(ones)
    return list(found)


def _ones(path: Path, is_one: Callable[[Path], bool], inside: str) -> list[Path]:
    if is_one(path):
        return [path]
    return sorted(each for each in path.glob(inside) if is_one(each))


def titles_of(paths: Iterable[Path]) -> dict[str, Path]:
    """The paths by what to call each of them: its name, or all of it where names are the same."""
    paths = list(paths)
    names = [path.stem if path.is_file() else path.resolve().name for path in paths]
    return {
        name if names.count(name) == 1 else str(path): path
        for name, path in zip(names, paths, strict=True)
    }
