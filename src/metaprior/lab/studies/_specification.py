"""The specification of a study: from a preset, a TOML file and flags to plain JSON.

What comes later overrides what came before. The result holds everything that decides the records,
so that it can be kept beside them and compared: the settings of every method are spelled out.
"""

import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from metaprior.lab.environments import known_families
from metaprior.lab.studies._choice import CRITERIA
from metaprior.lab.studies._contenders import ACQUISITIONS
from metaprior.lab.studies._entrants import (
    LEARN,
    RANDOM_SEARCH,
    VARIANTS,
    Entrant,
    EntrantName,
    canonical_name,
    entrants_of,
    learns_together,
    require_suited,
    search_ranges,
)
from metaprior.lab.studies._jobs import Job
from metaprior.lab.studies._presets import FULL, KINDS, OPTIONAL, PRESETS
from metaprior.learning import budget_named
from metaprior.methods import known_methods

# Plain JSON: `kind`, the fields of that kind in `_presets.py`, and `entrants`.
Specification = dict[str, Any]


def specification_of(
    kind: str,
    *,
    preset: str = "standard",
    file: Path | None = None,
    configurations: Path | None = None,
    cuts: dict[str, Any] | None = None,
    **given: Any,
) -> Specification:
    """The study of that kind, checked.

    - `preset`: `"smoke"`, `"standard"` or `"full"`.
    - `file`: a TOML file with fields in place of the preset's.
    - `configurations`: a folder that a search wrote, for the settings of the methods.
    - `cuts`: `block` and `chunk` if neither file nor flags have them; other fields are ignored.
    - `given`: fields in place of all others; `None` says nothing.
    """
    if kind not in KINDS:
        raise ValueError(f"There is no study {kind!r}; run one of {', '.join(KINDS)}.")
    if kind == "search" and configurations is not None:
        raise ValueError("A search chooses configurations and reads none; leave them out.")
    told = [_read(file, kind)] if file is not None else []
    told.append({name: value for name, value in given.items() if value is not None})
    # The configurations of a search are one job if nothing else was asked for.
    cut_by = ("chunk",) if kind == "search" else ("block", "chunk")
    fields = {name: value for name, value in (cuts or {}).items() if name in cut_by}
    fields |= PRESETS[preset][kind]
    for source in told:
        _refuse_foreign(source, kind)
        fields |= source
    checked = {name: _checked(name, value) for name, value in fields.items()}
    _refuse_unsuited(kind, checked["methods"])
    entrants = entrants_of(
        checked["environments"],
        checked["methods"],
        past_tasks=checked.get("past_tasks"),
        past_steps=checked.get("past_steps"),
        num_steps=checked.get("num_steps"),
        budget=checked.get("budget"),
        configurations=configurations,
    )
    if kind == "supervised":
        _refuse_unsplittable(entrants)
    plain = {name: list(v) if isinstance(v, tuple) else v for name, v in checked.items()}
    return {"kind": kind, **plain, "entrants": entrants}


def blocks(entries: Iterable[Any], size: int | None) -> list[list[Any]]:
    """The entries in their order, `size` to a job; all in one if there is no size."""
    entries = list(entries)
    size = size or len(entries)
    return [entries[i : i + size] for i in range(0, len(entries), size)]


def block_of(entrant: Entrant, specification: Specification) -> int | None:
    """How many repetitions of an entrant are a job."""
    return specification.get("block") if learns_together(entrant["method"]) else 1


def jobs_by_seeds(kind: str, specification: Specification, names: Iterable[str] = ()) -> list[Job]:
    """One job for each method on each environment and block of seeds, with the settings `names`.

    The first seeds of all come first, so that a study that is ended early is balanced.
    """
    how = {name: specification[name] for name in names}
    how["chunk"] = specification.get("chunk")
    jobs = [
        Job(kind, {**entrant, **how, "seeds": seeds})
        for entrant in specification["entrants"]
        for seeds in blocks(range(specification["seeds"]), block_of(entrant, specification))
    ]
    return sorted(jobs, key=lambda job: job.specification["seeds"][0])


def _read(file: Path, kind: str) -> dict[str, Any]:
    try:
        fields = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is not valid TOML ({error}); correct it.") from error
    if fields.pop("kind", kind) != kind:
        raise ValueError(f"{file} specifies another kind of study than {kind}; run that one.")
    return fields


def _refuse_foreign(fields: dict[str, Any], kind: str) -> None:
    allowed = [*FULL[kind], *OPTIONAL[kind]]
    if foreign := sorted(fields.keys() - set(allowed)):
        raise ValueError(
            f"A study of kind {kind} has no {foreign[0]!r}; it has {', '.join(allowed)}."
        )


def _checked(name: str, value: Any) -> Any:
    """A field in its one form: names as they are written, lists as tuples, counts at least 1."""
    if name == "environments":
        families = {each.lower(): each for each in known_families()}
        return _names(name, value, lambda one: families.get(str(one).strip().lower()), families)
    if name == "methods":
        known = [*known_methods(), LEARN, RANDOM_SEARCH]
        more = f"(and, after a plus sign, {', '.join(VARIANTS)})"
        return _names(name, value, canonical_name, known, more)
    if name == "budget":
        if not isinstance(value, str):
            raise ValueError(
                f"`budget` is {value!r}; name one, since seconds give other records each time."
            )
        return budget_named(value).name
    if name == "readings":
        known = ("collected", "uniform")
        return _names(name, value, lambda one: one if one in known else None, known)
    if name == "criterion":
        if value not in CRITERIA:
            raise ValueError(f"There is no criterion {value!r}; give {' or '.join(CRITERIA)}.")
        return value
    if name == "acquisition":
        if value not in ACQUISITIONS:
            raise ValueError(
                f"There is no acquisition {value!r}; give {' or '.join(ACQUISITIONS)}."
            )
        return value
    if name == "contexts":
        counts = value if isinstance(value, list | tuple) else [value]
        if not counts or any(not _is_count(each, 0) for each in counts):
            raise ValueError(f"`contexts` is {value!r}; give whole numbers >= 0, such as [1, 8].")
        return tuple(counts)
    if not _is_count(value, 1):
        raise ValueError(f"`{name}` is {value!r}; give a whole number >= 1.")
    return value


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _names(
    field: str,
    value: Any,
    canonical: Callable[[Any], str | None],
    known: Iterable[str],
    more: str = "",
) -> tuple[str, ...]:
    """Names as records have them, each once.

    - `canonical`: from a name in any case to how it is written, `None` for a strange one.
    """
    names = value.split(",") if isinstance(value, str) else value
    words = " ".join([", ".join(known), *([more] if more else [])])
    found: dict[str, None] = {}
    for name in names if isinstance(names, list | tuple) else [names]:
        written = canonical(name)
        if written is None:
            raise ValueError(f"There is no {name!r} among the {field}; name {words}.")
        found[written] = None
    if not found:
        raise ValueError(f"A study needs {field}; name some of {words}.")
    return tuple(found)


def _refuse_unsuited(kind: str, methods: tuple[str, ...]) -> None:
    for name in methods:
        require_suited(name)
        named = EntrantName.of(name)
        if named.method == RANDOM_SEARCH and kind in ("supervised", "calibration", "search"):
            raise ValueError(
                f"{name} predicts nothing and has no settings; leave it out of a {kind} study."
            )
        if kind == "search" and named.method == LEARN:
            raise ValueError(f"{name} chooses for itself; leave it out of the search.")
        if kind == "search" and not search_ranges(name):
            raise ValueError(
                f"{name} has no SEARCH_RANGES to draw settings from; leave it out of the search."
            )
        if kind != "lifelong" and "versions" in named.variants:
            raise ValueError(
                f"{name} keeps versions from run to run; it belongs in a lifelong study."
            )


def _refuse_unsplittable(entrants: list[dict[str, Any]]) -> None:
    for entrant in entrants:
        if entrant["past_tasks"] < 4 or entrant["past_steps"] < 2:
            raise ValueError(
                f"Halves of {entrant['past_tasks']} runs of {entrant['past_steps']} points are too "
                "small to learn from and be judged on; give at least 4 runs of 2 points."
            )
