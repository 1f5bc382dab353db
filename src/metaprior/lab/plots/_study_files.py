"""What a study left behind, as one table: a row for each measurement.

`study.json` says which study it was; every file under `jobs/` is the record of one job, with the
specification of the job in its metadata. Files are all that figures know of a study, so that they
can be drawn wherever the files are.
"""

import json
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

FORMAT, FORMAT_VERSION = "metaprior-study", 1
JOB_KEY = b"metaprior.job"

# Pandas is imported when records are read, not before, so its types cannot be named here.
DataFrame = Any


class StudyResults(NamedTuple):
    """The kind of a study, its specification, and its rows.

    Every row has the columns `environment` and `method` from the specification of its job, and
    those that the job returned. Rows come in no particular order.
    """

    folder: Path
    kind: str
    specification: dict[str, Any]
    rows: DataFrame


def read_results(folder: str | Path) -> StudyResults:
    """Everything that has been measured so far in the study in `folder`."""
    folder = Path(folder)
    specification = _read_specification(folder / "study.json")
    found = [_read(path) for path in sorted((folder / "jobs").glob("*.parquet"))]
    frames = [frame for frame in found if frame is not None]
    if not frames:
        raise ValueError(f"No job of the study in {folder} has finished; run it first.")
    rows = _extra("pandas").concat(frames, ignore_index=True)
    return StudyResults(folder, str(specification.get("kind")), specification, rows)


def require_columns(results: StudyResults, needed: set[str]) -> None:
    """An error that names the columns without which there is nothing to report."""
    there = set(results.rows.columns)
    if lacking := sorted({"environment", "method", *needed} - there):
        raise ValueError(
            f"The records of this {results.kind} study lack the columns {', '.join(lacking)} (they "
            f"have {', '.join(sorted(there))}); run the study again with this version of metaprior."
        )


def _read_specification(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ValueError(f"There is no study in {path.parent}: {path.name} is missing; run one.")
    try:
        whole = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON ({error}); restore it from a copy.") from error
    found = (whole.get("format"), whole.get("format_version")) if isinstance(whole, dict) else None
    if found != (FORMAT, FORMAT_VERSION) or not isinstance(whole["specification"], dict):
        raise ValueError(
            f"{path} does not describe a study of this version of metaprior; name another folder, "
            "or use the version that wrote it."
        )
    return whole["specification"]


def _read(path: Path) -> DataFrame | None:
    """The rows of one job; a damaged file is passed over, and said so."""
    parquet = _extra("pyarrow.parquet")
    try:
        table = parquet.read_table(path)
        job = json.loads((table.schema.metadata or {})[JOB_KEY])
        about = {name: str(job["specification"][name]) for name in ("environment", "method")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        warnings.warn(
            f"{path} is not the record of a finished job ({type(error).__name__}); the report is "
            "made without it: run the study again.",
            stacklevel=3,
        )
        return None
    return table.to_pandas().assign(**about)


def _extra(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"Reports of studies need {name.split('.')[0]}, which cannot be imported ({error}); "
            "install it with `pip install 'metaprior[study]'`."
        ) from error
