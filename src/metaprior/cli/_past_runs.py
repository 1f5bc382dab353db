"""Where `metaprior learn` gets past runs from: CSV files or the store of a host, in one shape."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from metaprior.adapters import StudyUse
from metaprior.cli._hosts import Host, split
from metaprior.data import Quantity, Space, Tasks
from metaprior.data.csv import read_runs, read_space

# What an option is about, for those that not every source has.
_ABOUT = {
    "value": "columns of CSV files",
    "unit": "columns of CSV files",
    "bounds": "columns of CSV files",
    "task": "CSV files and logged runs",
    "ignore": "CSV files and logged runs",
    "metric": "hosts that record metrics",
    "studies": "studies of a host",
    "match": "studies of a host",
}
_OF_FILES = frozenset({"value", "unit", "bounds", "task", "ignore"})
_OF_HOSTS = frozenset({"studies", "match"})


class Wanted(NamedTuple):
    """The options about past runs; `None` or empty if not given.

    - `space_file`: a TOML file of the space; `space`: one that is known without a file.
    - `value`: a column of CSV files; `metric`: the value of runs that a host has recorded.
    - `task`, `ignore`: columns of CSV files, or parameters of logged runs.
    - `studies`, `match`: names of the studies of a host.
    - `features`: columns of files, or attributes of studies, that say something of a task.
    - `value_bounds`: limits of the value.
    - `fewest`: how many runs there must be at least.
    - `unit`: of the value; `bounds`: of inferred dimensions. Both of CSV files.
    """

    space_file: Path | None = None
    direction: str | None = None
    value: str | None = None
    metric: str | None = None
    task: str | None = None
    ignore: Collection[str] = ()
    studies: Collection[str] = ()
    match: str | None = None
    features: Collection[str] = ()
    value_bounds: tuple[float, float] | None = None
    unit: str | None = None
    bounds: str | None = None
    space: Space | None = None
    fewest: int = 2

    @property
    def given_space(self) -> Space | None:
        """The space that the runs are to be read with; `None` if it is to be inferred."""
        return self.space if self.space_file is None else read_space(self.space_file)


class PastRuns(NamedTuple):
    """Past runs, wherever they came from.

    - `tasks`: for `metaprior.learn`; task `i` is called `names[i]`.
    - `notes`: sentences on what was left out and what looks odd.
    - `origin`: how many of what were read, as in "6 files"; `value`: what is optimised, in words.
    - `inferred`: whether the space was not given.
    - `studies`: how each study of a host was used; `None` for files.
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
    """The past runs in `sources`: all of them CSV files, or of one host."""
    pairs = [split(source) for source in sources]
    hosts = {host for host, _ in pairs}
    host = next((host for host, _ in pairs if host is not None), None)
    if host is None:
        return _from_files(sources, wanted)
    if len(hosts) > 1 or not (host.several or len(sources) == 1):
        kind = "of one kind" if host.several else "the only one"
        raise ValueError(
            f"A source that begins with {host.name}: must be {kind}, received {len(sources)} "
            f"sources; learn from {host.source}, or from CSV files."
        )
    return _from_host(host, [rest for _, rest in pairs], wanted)


def _from_files(sources: list[str], wanted: Wanted) -> PastRuns:
    _refuse("CSV files", wanted, {*_OF_HOSTS, "metric"})
    read = read_runs(
        sources,
        space=wanted.given_space,
        value=wanted.value,
        task=wanted.task,
        direction=wanted.direction or "maximize",
        ignore=wanted.ignore,
        features=wanted.features,
        value_bounds=wanted.value_bounds,
        unit=wanted.unit,
        bounds=wanted.bounds or "data",
        fewest=wanted.fewest,
    )
    return PastRuns(
        read.tasks,
        read.names_of_runs,
        read.notes,
        origin=f"{read.num_files} file{'s' if read.num_files > 1 else ''}",
        value=read.tasks.quantity.label,
        inferred=wanted.given_space is None,
        studies=None,
        details={"files": read.num_files, "value": read.value},
    )


def _from_host(host: Host, sources: list[str], wanted: Wanted) -> PastRuns:
    _refuse(host.source, wanted, {*_OF_FILES, "metric"} - host.options)
    space = wanted.given_space
    history = host.read(
        sources,
        studies=wanted.studies or None,
        match=wanted.match,
        space=space,
        direction=wanted.direction,
        features=wanted.features,
        value_bounds=wanted.value_bounds,
        **{name: getattr(wanted, name) for name in host.options},
    )
    used, found = len(history.tasks), len(history.studies)
    if used < wanted.fewest:
        more = "give more studies"
        if "task" in host.options and wanted.task is None:
            more += ", or name with --task what says which runs belong together"
        raise ValueError(
            f"Learning a prior needs at least {wanted.fewest} studies with 2 complete trials, "
            f"received {used} of {found}{_why_skipped(history.studies)}; {more}."
        )
    return PastRuns(
        history.tasks,
        history.names,
        history.notes,
        origin=f"{found} studies",
        value=_called(history.tasks.quantity),
        inferred=space is None,
        studies=history.studies,
        details={"studies": [use._asdict() for use in history.studies]},
    )


def _called(quantity: Quantity) -> str:
    return "the value" if quantity == Quantity() else quantity.label


def _refuse(source: str, wanted: Wanted, options: Iterable[str]) -> None:
    given = [name for name in _ABOUT if name in options and getattr(wanted, name)]
    if given:
        raise ValueError(
            f"--{given[0]} is about {_ABOUT[given[0]]}, and the source is {source}; leave it out."
        )


def _why_skipped(studies: list[StudyUse]) -> str:
    skipped = [study for study in studies if not study.used]
    return f" (skipped: {skipped[0].name!r}, {skipped[0].reason})" if skipped else ""
