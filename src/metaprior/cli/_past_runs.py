"""Where `metaprior learn` gets past runs from: CSV files or an Optuna storage, in one shape."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from metaprior.adapters import StudyUse
from metaprior.cli._errors import needing_optuna
from metaprior.data import Tasks
from metaprior.data.csv import read_runs, read_space

# The prefix of an Optuna storage among the sources of past runs.
OPTUNA = "optuna:"


class Wanted(NamedTuple):
    """The options about past runs; `None` or empty if not given.

    - `value`, `task`, `ignore`: columns of CSV files.
    - `studies`, `match`: names of Optuna studies.
    - `features`: columns of files, or user attributes of studies, that say something of a task.
    - `value_bounds`: limits of the value.
    - `unit`: of the value; `bounds`: of inferred dimensions. Both of CSV files.
    """

    space_file: Path | None = None
    direction: str | None = None
    value: str | None = None
    task: str | None = None
    ignore: Collection[str] = ()
    studies: Collection[str] = ()
    match: str | None = None
    features: Collection[str] = ()
    value_bounds: tuple[float, float] | None = None
    unit: str | None = None
    bounds: str | None = None


class PastRuns(NamedTuple):
    """Past runs, wherever they came from.

    - `tasks`: for `metaprior.learn`; task `i` is called `names[i]`.
    - `notes`: sentences on what was left out and what looks odd.
    - `origin`: how many of what were read, as in "6 files"; `value`: what is optimised, in words.
    - `inferred`: whether the space was not given.
    - `studies`: how each Optuna study was used; `None` for files.
    - `details`: what else goes into the JSON answer.
    """

    tasks: Tasks
    names: list[str]
    notes: list[str]
    origin: str
    value: str
    inferred: bool
    studies: list[StudyUse] | None
    details: dict[str, Any]


def past_runs(sources: list[str], wanted: Wanted) -> PastRuns:
    """The past runs in `sources`: all of them CSV files, or a single Optuna storage."""
    storages = [source for source in sources if source.startswith(OPTUNA)]
    if not storages:
        return _from_files(sources, wanted)
    if len(sources) > 1:
        raise ValueError(
            f"An optuna: source must be the only one, received {len(sources)} sources; learn from "
            "one Optuna storage, or from CSV files."
        )
    return _from_storage(storages[0].removeprefix(OPTUNA), wanted)


def _from_files(sources: list[str], wanted: Wanted) -> PastRuns:
    _refuse("CSV files", {"--studies": wanted.studies, "--match": wanted.match}, "Optuna studies")
    read = read_runs(
        sources,
        space=None if wanted.space_file is None else read_space(wanted.space_file),
        value=wanted.value,
        task=wanted.task,
        direction=wanted.direction or "maximize",
        ignore=wanted.ignore,
        features=wanted.features,
        value_bounds=wanted.value_bounds,
        unit=wanted.unit,
        bounds=wanted.bounds or "data",
    )
    return PastRuns(
        read.tasks,
        read.names_of_runs,
        read.notes,
        origin=f"{read.num_files} file{'s' if read.num_files > 1 else ''}",
        value=read.tasks.quantity.label,
        inferred=wanted.space_file is None,
        studies=None,
        details={"files": read.num_files, "value": read.value},
    )


def _from_storage(storage: str, wanted: Wanted) -> PastRuns:
    columns = {
        "--value": wanted.value,
        "--task": wanted.task,
        "--ignore": wanted.ignore,
        "--unit": wanted.unit,
        "--bounds": wanted.bounds,
    }
    _refuse("an Optuna storage", columns, "columns of CSV files")
    space = None if wanted.space_file is None else read_space(wanted.space_file)
    with needing_optuna():
        from metaprior.adapters.optuna import read_history
    with _optuna_silent():
        history = read_history(
            storage,
            studies=wanted.studies or None,
            match=wanted.match,
            space=space,
            direction=wanted.direction,
            features=wanted.features,
            value_bounds=wanted.value_bounds,
        )
    used, found = len(history.tasks), len(history.studies)
    if used < 2:
        raise ValueError(
            f"Learning a prior needs at least 2 studies with 2 complete trials, received {used} "
            f"of {found}{_why_skipped(history.studies)}; give more studies."
        )
    return PastRuns(
        history.tasks,
        history.names,
        history.notes,
        origin=f"{found} studies",
        value="the value",
        inferred=space is None,
        studies=history.studies,
        details={"studies": [use._asdict() for use in history.studies]},
    )


def _refuse(source: str, options: dict[str, Any], about: str) -> None:
    given = [option for option, value in options.items() if value]
    if given:
        raise ValueError(f"{given[0]} is about {about}, and the source is {source}; leave it out.")


def _why_skipped(studies: list[StudyUse]) -> str:
    skipped = [study for study in studies if not study.used]
    return f" (skipped: {skipped[0].name!r}, {skipped[0].reason})" if skipped else ""


@contextmanager
def _optuna_silent() -> Iterator[None]:
    """Optuna's log goes to standard error, where only our own sentences belong."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
