"""The folder of a study: what it is, and one Parquet file for each job that has finished.

    study.json              the specification of the study
    jobs/<name>.parquet     what the job of that name returned, with the job itself in the metadata
    jobs/<name>.error.txt   why the job of that name failed, until it succeeds

A file is there whole or not at all, whenever the process or the machine stops. This module is the
only reader and writer of these files: the engine, reports, benchmarks and commands go through it.
"""

import json
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from metaprior.files import hold, replace_file
from metaprior.lab.studies._extra import import_extra
from metaprior.lab.studies._jobs import FORMAT_VERSION, Columns, Job, canonical_json

FORMAT = "metaprior-study"
# Their jobs have other kinds, and one of the methods another name.
OLD_FORMAT_VERSIONS = (1,)
STUDY, JOBS, LOCK = "study.json", "jobs", ".lock"
JOB_KEY = b"metaprior.job"
NAME_COLUMN = "job"
SHOWN_LENGTH = 200

# Pandas is imported when records are read, not before, so its types cannot be named here.
DataFrame = Any


class RecordError(ValueError):
    """What is not the record of a finished job, or cannot become one, and why."""


class RecordWarning(UserWarning):
    """A file among the records is not one; its job counts as unfinished."""


class StudyResults(NamedTuple):
    """A study and everything that has been measured in it so far.

    - `records`: as `read_records` gives them.
    """

    folder: Path
    specification: dict[str, Any]
    records: DataFrame

    @property
    def kind(self) -> str:
        """Which study it was: `"offline"`, `"lifelong"` and so on."""
        return str(self.specification.get("kind"))


def read_results(folder: str | Path) -> StudyResults:
    """The study in `folder`, finished or not, and its records."""
    folder = Path(folder)
    return StudyResults(folder, read_study(folder), read_records(folder))


def start_study(folder: str | Path, specification: dict[str, Any]) -> Path:
    """Make `folder` the folder of this study; it may be so already, but of no other study."""
    folder = Path(folder)
    text = canonical_json(specification)
    if holds_study(folder):
        held = read_study(folder)
        if canonical_json(held) != text:
            raise ValueError(
                f"{folder} holds another study ({_difference(held, json.loads(text))}); name "
                "another folder, or give the specification that is there."
            )
    else:
        folder.mkdir(parents=True, exist_ok=True)
        whole = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "specification": json.loads(text),
        }
        replace_file(folder / STUDY, (json.dumps(whole, indent=2) + "\n").encode())
    return folder


def holds_study(folder: str | Path) -> bool:
    """Whether a study was ever started in `folder`."""
    return (Path(folder) / STUDY).exists()


def read_study(folder: str | Path) -> dict[str, Any]:
    """The specification of the study in `folder`."""
    path = Path(folder) / STUDY
    if not path.is_file():
        raise ValueError(f"There is no study in {folder}: {STUDY} is missing; run one there first.")
    try:
        whole = json.loads(path.read_bytes())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} is not valid JSON ({error}); restore it from a copy, or delete it and start "
            "the study again: finished jobs are kept."
        ) from error
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise ValueError(f"{path} was not written by a study of metaprior; name another folder.")
    version = whole.get("format_version")
    if version in OLD_FORMAT_VERSIONS:
        raise ValueError(
            f"{path} has format version {version}, whose jobs and methods had other names than in "
            f"version {FORMAT_VERSION}; run the study again in a new folder, or read this one with "
            "the metaprior that wrote it."
        )
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {version!r}, and this metaprior reads version "
            f"{FORMAT_VERSION}; use the metaprior that wrote it, or another folder."
        )
    if not isinstance(whole.get("specification"), dict):
        raise ValueError(f"{path} has no specification; restore it from a copy.")
    return whole["specification"]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep `folder` for this process while in the context; refuse if another one has it."""

    def if_held(holder: str) -> ValueError:
        return ValueError(
            f"A study is already running in {folder} ({holder}); wait for it, stop it, or name "
            "another folder."
        )

    folder.mkdir(parents=True, exist_ok=True)
    with hold(folder / LOCK, if_held=if_held):
        yield


def write_record(folder: Path, job: Job, columns: Columns) -> Path:
    """Keep what `job` returned; from now on it has finished.

    Columns that no record can hold are a `RecordError`; a file that cannot be written is not.
    """
    path, content = _path(folder, job), _record(job, columns)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)
    _error_path(folder, job).unlink(missing_ok=True)
    return path


def write_error(folder: Path, job: Job, text: str) -> Path:
    """Keep why `job` failed, with the full traceback."""
    path = _error_path(folder, job)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text.encode(errors="replace"))
    return path


def finished_jobs(folder: Path, jobs: Iterable[Job]) -> set[Job]:
    """Those of `jobs` whose records are in `folder`, whole."""
    return {job for job in jobs if _read_if_whole(_path(folder, job)) is not None}


def read_records(folder: str | Path, *, jobs: Iterable[Job] | None = None) -> DataFrame:
    """All records of a study as one pandas frame, each row with the specification of its job.

    A specification `{"seed": 3, "method": {"kappa": 0.1}, "sizes": [5, 10]}` becomes the columns
    `seed`, `method.kappa` and `sizes` (lists as JSON text); `job` is the name of the job. Rows are
    ordered by specification, then as the job returned them, whatever order jobs finished in.

    - `jobs`: read the records of these only.
    """
    pandas = import_extra("pandas")
    folder = Path(folder)
    if jobs is None:
        paths = sorted((folder / JOBS).glob("*.parquet"))
    else:
        paths = sorted({_path(folder, job) for job in jobs})
    records = [record for path in paths if (record := _read_if_whole(path)) is not None]
    if not records:
        raise ValueError(f"No job of a study has finished in {folder}; run the study there first.")
    records.sort(key=lambda record: (_rank(record[0].specification), record[0].name))
    specifications = pandas.DataFrame([specification_columns(job) for job, _ in records])
    frames = [frame for _, frame in records]
    rows = specifications.index.repeat([len(frame) for frame in frames])
    # Empty frames would have a say in the types of columns.
    returned = pandas.concat([f for f in frames if len(f)] or frames[:1], ignore_index=True)
    return pandas.concat([specifications.loc[rows].reset_index(drop=True), returned], axis=1)


def specification_columns(job: Job) -> dict[str, Any]:
    """What every row of the job's record is given: the name of the job and its specification."""
    flat = _flat(job.specification)
    if NAME_COLUMN in flat:
        raise ValueError(
            f"The specification of a job has the entry {NAME_COLUMN!r}, which is the column of its "
            "name; rename it."
        )
    return {NAME_COLUMN: job.name, **flat}


def _record(job: Job, columns: Columns) -> bytes:
    """The content of the file of a finished job."""
    pyarrow, parquet = import_extra("pyarrow"), import_extra("pyarrow.parquet")
    taken = columns.keys() & specification_columns(job).keys()
    if taken:
        raise RecordError(
            f"{job.kind} returned the columns {sorted(taken)}, which its rows have from its "
            "specification; rename them."
        )
    try:
        table = pyarrow.table(columns, metadata={JOB_KEY: job.text.encode()})
        file = BytesIO()
        parquet.write_table(table, file, compression="zstd", write_page_checksum=True)
    except pyarrow.ArrowException as error:
        raise RecordError(
            f"{job.kind} returned columns that Parquet cannot hold ({error}); return numbers, "
            "booleans or strings."
        ) from error
    return file.getvalue()


def _read_if_whole(path: Path) -> tuple[Job, DataFrame] | None:
    if not path.exists():
        return None
    try:
        return _read(path)
    except RecordError as error:
        warnings.warn(str(error), RecordWarning, stacklevel=4)
        return None


def _read(path: Path) -> tuple[Job, DataFrame]:
    pyarrow, parquet = import_extra("pyarrow"), import_extra("pyarrow.parquet")
    content = path.read_bytes()
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(content), page_checksum_verification=True)
        frame = file.read().to_pandas()
        text = (file.schema_arrow.metadata or {}).get(JOB_KEY)
        if text is None:
            raise ValueError("it was not written by a study of metaprior")
        job = Job.from_text(text.decode())
        if job.name != path.stem:
            raise ValueError(f"it is the record of another job, {job.name}")
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, MemoryError) as error:
        problem = " ".join(str(error).split()).removesuffix(".")
        raise RecordError(
            f"{path} is not the record of a finished job ({problem}); its job counts as "
            "unfinished: run the study again."
        ) from error
    return job, frame


def _path(folder: Path, job: Job) -> Path:
    return folder / JOBS / f"{job.name}.parquet"


def _error_path(folder: Path, job: Job) -> Path:
    return folder / JOBS / f"{job.name}.error.txt"


def _flat(specification: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """One column for each leaf of a specification."""
    flat: dict[str, Any] = {}
    for key, value in specification.items():
        column = prefix + key
        inner = _flat(value, f"{column}.") if isinstance(value, dict) else {column: value}
        if twice := sorted(flat.keys() & inner.keys()):
            raise ValueError(
                f"The specification of a job has two entries for the columns {twice}; use keys "
                "without dots."
            )
        flat |= inner
    return {
        column: canonical_json(value) if isinstance(value, list) else value
        for column, value in flat.items()
    }


def _rank(value: Any) -> tuple[int, Any]:
    """A sort key for all JSON values; numbers by size, so that seed 2 comes before seed 10."""
    if value is None:
        return 0, 0
    if isinstance(value, str):
        return 2, value
    if isinstance(value, list):
        return 3, [_rank(item) for item in value]
    if isinstance(value, dict):
        return 4, [(key, _rank(value[key])) for key in sorted(value)]
    return 1, value


def _difference(held: dict[str, Any], asked: dict[str, Any]) -> str:
    """The shortest of the entries in which two specifications differ, in words."""

    def of(specification: dict[str, Any], key: str) -> str:
        return canonical_json(specification[key]) if key in specification else "absent"

    differing = [
        key for key in sorted(held.keys() | asked.keys()) if of(held, key) != of(asked, key)
    ]
    key = min(differing, key=lambda key: len(of(held, key)) + len(of(asked, key)))
    return f"its `{key}` is {_shortened(of(held, key))}, yours is {_shortened(of(asked, key))}"


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 1] + "…"
