"""Files of exported runs, whichever way they were written.

| file | layout |
|---|---|
| CSV or JSON by the script in W&B's documentation | columns `summary` and `config` of dicts |
| JSON or JSON lines, an object per run | `config`, `summary` or `summary_metrics`, and others |
| CSV with prefixes | `config.lr`, `summary.loss`, and others |
| CSV of the runs table of the web page | one column per key, of either kind, and W&B's own |
"""

import ast
import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from metaprior.adapters.histories import LoggedRun, flat
from metaprior.files import parse_json
from metaprior.words import shortened

SUFFIXES = (".csv", ".json", ".jsonl")
_CONFIGS = ("config", "rawconfig", "json_config")
_SUMMARIES = ("summary", "summary_metrics")
# Columns of the runs table, in lower case, that are neither parameters nor results.
_OWN = {
    *("commit", "created", "created_at", "createdat", "description", "display_name", "end time"),
    *("entity", "github", "gpu count", "gpu type", "group", "heartbeat_at", "hostname", "id"),
    *(
        "job type",
        "job_type",
        "jobtype",
        "name",
        "notes",
        "os",
        "path",
        "project",
        "python version",
    ),
    *("run id", "runtime", "start time", "state", "sweep", "sweep_name", "sweepname", "tags"),
    *("updated", "url", "user", "username", ""),
}
_CREATED = ("created_at", "createdAt", "Created")
# A number that is not finite, as Python writes it into a dict.
_NOT_FINITE = re.compile(r"(?<=[:\[,] )-?(nan|inf)(?=[,}\]])")
_PREFIX = re.compile(r"(config|summary)[./](.+)", re.IGNORECASE)
# As W&B joins the names of nested values.
_SEPARATOR = "."


class Export(NamedTuple):
    """The runs of a file; `flat_table` if nothing in it tells parameters from results."""

    runs: list[LoggedRun]
    flat_table: bool


def is_export(path: Path) -> bool:
    """Whether a path is that of a file that may hold exported runs."""
    return path.is_file() and path.suffix.lower() in SUFFIXES


def read_export(path: Path) -> Export:
    """The runs in a file, the first one first."""
    rows = _rows_of_csv(path) if path.suffix.lower() == ".csv" else _rows_of_json(path)
    if not rows:
        raise ValueError(f"{path} has no runs; export them again.")
    names = {name for row in rows for name in row}
    # The newest run comes first in most exports.
    created = next((name for name in _CREATED if name in names), None)
    if created is not None and all(row.get(created) for row in rows):
        rows = sorted(rows, key=lambda row: str(row[created]))
    nested = any(name in names for name in _CONFIGS)
    prefixed = any(_PREFIX.fullmatch(name) for name in names)
    if nested:
        return Export([_nested(row, f"{path}, run {i + 1}") for i, row in enumerate(rows)], False)
    if prefixed:
        return Export([_prefixed(row) for row in rows], False)
    return Export([_plain(row) for row in rows], True)


def _nested(row: Mapping[str, Any], where: str) -> LoggedRun:
    config = _as_dict(_first(row, _CONFIGS), where, "config")
    summary = _as_dict(_first(row, _SUMMARIES), where, "summary")
    others = {n: v for n, v in row.items() if n not in (*_CONFIGS, *_SUMMARIES) and n}
    return LoggedRun(
        flat(_own(_unwrapped(config)), _SEPARATOR),
        flat(_own(summary), _SEPARATOR),
        flat(others, _SEPARATOR),
        _fault(row),
    )


def _prefixed(row: Mapping[str, Any]) -> LoggedRun:
    parts: dict[str, dict[str, Any]] = {"config": {}, "summary": {}}
    others = {}
    for name, value in row.items():
        found = _PREFIX.fullmatch(name)
        if found:
            parts[found[1].lower()][found[2]] = value
        else:
            others[name] = value
    return LoggedRun(_own(parts["config"]), _own(parts["summary"]), others, _fault(row))


def _plain(row: Mapping[str, Any]) -> LoggedRun:
    """A row of a table in which any column may be a parameter, or a result."""
    own = {name: value for name, value in row.items() if name.lower() in _OWN and name}
    columns = {name: value for name, value in _own(row).items() if name.lower() not in _OWN}
    results = {name: value for name, value in columns.items() if _is_number(value)}
    return LoggedRun(columns, results, own, _fault(row))


def _fault(row: Mapping[str, Any]) -> str:
    """The state of a run, if it has not finished."""
    state = str(row.get("state") or row.get("State") or "finished").lower()
    return "" if state == "finished" else state


def _own(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values without those that W&B adds: `_wandb`, `_step`, `_runtime`."""
    return {name: value for name, value in values.items() if not name.startswith("_")}


def _unwrapped(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as `config.yaml` has it: each value with its description."""
    return {
        name: value["value"]
        if isinstance(value, Mapping) and value.keys() <= {"value", "desc"} and "value" in value
        else value
        for name, value in config.items()
    }


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name)), {})


def _as_dict(value: Any, where: str, name: str) -> Mapping[str, Any]:
    """A dict, or the text of one, as JSON or as Python writes it."""
    if isinstance(value, Mapping):
        return value
    text = str(value).strip()
    for read in (json.loads, lambda text: ast.literal_eval(_NOT_FINITE.sub("None", text))):
        try:
            found = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    raise ValueError(
        f"{where}: {name!r} is {shortened(text)} where a dict should be; export the runs again."
    )


def _rows_of_csv(path: Path) -> list[dict[str, Any]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = [{k: v for k, v in row.items() if isinstance(k, str)} for row in reader]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is no CSV file that can be read ({error}); export it again."
        ) from None
    return [row for row in rows if any(row.values())]


def _rows_of_json(path: Path) -> list[dict[str, Any]]:
    """Objects in a list, in lines, or by column, as pandas writes a frame."""
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    try:
        found = parse_json(text.encode())
    except ValueError:
        found = _lines(text, path)
    if isinstance(found, dict) and isinstance(found.get("runs"), list):
        found = found["runs"]
    if isinstance(found, dict) and _is_by_column(found):
        found = _by_row(found)
    rows = found if isinstance(found, list) else [found]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{path} is no list of runs; export one object per run.")
    return rows


def _lines(text: str, path: Path) -> list[Any]:
    found = []
    for i, line in enumerate(text.splitlines()):
        try:
            found += [parse_json(line.encode())] if line.strip() else []
        except ValueError as error:
            raise ValueError(
                f"{path}, line {i + 1} is not JSON ({error}); export it again."
            ) from None
    return found


def _is_by_column(found: Mapping[str, Any]) -> bool:
    """Whether an object is a frame by column, and not one run: its columns have the same labels of
    rows, and those of configurations hold dicts or texts of dicts."""
    columns = list(found.values())
    if not columns or not all(isinstance(each, dict) for each in columns):
        return False
    configs = [value for name in _CONFIGS for value in found.get(name, {}).values()]
    return (
        all(each.keys() == columns[0].keys() for each in columns)
        and any(value is not None for value in configs)
        and all(value is None or _may_be_dict(value) for value in configs)
    )


def _may_be_dict(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, str) and value.lstrip().startswith("{"))


def _by_row(columns: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for name, column in columns.items():
        for key, value in column.items():
            rows.setdefault(key, {})[name] = value
    return list(rows.values())


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)
