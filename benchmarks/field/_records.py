"""The records: one Parquet file for each cell and method, and all of them in one small file.

One row is one new task. What measures need is in both kinds of file:

| column | what |
|---|---|
| `family`, `regime`, `phase`, `seed`, `method`, `task` | what was run |
| `regret` | after each query, as a share of the gap |
| `seconds`, `learning_seconds` | CPU time of an ask in the mean, and of learning before |
| `asked`, `inside` | points predicted before they were asked, and how many lay in the band |
| `at_most@4` and others | of predicted points, how many values had a CDF at most each level |
| `density@4` and others | mean log density of these points |

Files of one cell also have the asked rows (`rows`), their CDFs (`cdf`) and `trust@4` and others.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.field._pools import Pool

PREDICTED_AFTER = (1, 4, 8, 16, 32)
LEVELS = np.linspace(0.0, 1.0, 20)
BAND = 0.95
RUN = "run.json"
Record = dict[str, Any]
ONLY_IN_CELLS = ("rows", "cdf", *(f"trust@{step}" for step in PREDICTED_AFTER))
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("family", "regime", "phase", "method", "task")),
        *((name, pa.int32()) for name in ("seed", "asked", "inside")),
        *((name, pa.float64()) for name in ("seconds", "learning_seconds")),
        ("regret", pa.list_(pa.float32())),
        ("rows", pa.list_(pa.int32())),
        ("cdf", pa.list_(pa.float32())),
        *((f"at_most@{step}", pa.list_(pa.int16())) for step in PREDICTED_AFTER),
        *((f"{name}@{t}", pa.float64()) for name in ("density", "trust") for t in PREDICTED_AFTER),
    ]
)


def row_of(record: Record, pool: Pool) -> Record:
    """A row of the table, from what a search on a task wrote down."""
    values = np.maximum.accumulate(pool.y[record["rows"]])
    cdf = np.clip(np.asarray(record.get("cdf", [])), 0.0, 1.0)
    row = {
        "task": pool.name,
        "regret": ((pool.y.max() - values) / pool.gap).astype(np.float32),
        "seconds": float(record["seconds"]),
        "asked": len(cdf),
        "inside": int(np.sum(np.abs(2.0 * cdf - 1.0) <= BAND)),
        "rows": np.asarray(record["rows"], np.int32),
        "cdf": cdf.astype(np.float32),
    }
    for step in PREDICTED_AFTER:
        values = np.sort(np.clip(np.asarray(record.get(f"cdf@{step}", [])), 0.0, 1.0))
        counts = np.searchsorted(values, LEVELS, side="right") if len(values) else []
        row[f"at_most@{step}"] = np.asarray(counts, np.int16)
        row[f"density@{step}"] = float(record.get(f"density@{step}", np.nan))
        trust = record.get(f"trust@{step}")
        row[f"trust@{step}"] = np.nan if trust is None else float(trust)
    return row


def write(rows: list[Record], file: Path) -> None:
    """Rows as a Parquet file that is either there as a whole or not at all."""
    _write(pa.Table.from_pylist(rows, SCHEMA), file)


def _write(table: pa.Table, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    pq.write_table(table, part, compression="zstd", compression_level=15)
    part.replace(file)


def read_rows(file: Path) -> list[Record]:
    """The rows of one file."""
    return pq.read_table(file).to_pylist()


def read(place: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """All records, and how they were made: of a folder, or of one file with everything."""
    table, made = _read(place)
    return table.to_pandas(), made


def _read(place: Path) -> tuple[pa.Table, dict[str, Any]]:
    if place.is_dir():
        files = sorted((place / "records").glob("*.parquet"))
        run = place / RUN
        made = json.loads(run.read_text()) if run.is_file() else {}
    else:
        files = [place] if place.is_file() else []
        made = json.loads((pq.read_schema(place).metadata or {}).get(RUN.encode(), b"{}"))
    if not files:
        raise FileNotFoundError(f"{place} holds no records; make some with the command run.")
    return pa.concat_tables([pq.read_table(file) for file in files]), made


def split_by(frame: pd.DataFrame, columns: list[str]) -> dict[tuple[Any, ...], pd.DataFrame]:
    """The rows by what they have in the columns, in the order of its first appearance."""
    groups = frame.groupby(columns, sort=False).indices
    return {key if isinstance(key, tuple) else (key,): frame.take(i) for key, i in groups.items()}


def gather(folder: Path, file: Path) -> None:
    """Everything that measures need, in one file."""
    table, made = _read(folder)
    kept = table.drop_columns([name for name in ONLY_IN_CELLS if name in table.column_names])
    _write(kept.replace_schema_metadata({RUN: json.dumps(made)}), file)


def note_run(folder: Path, entry: dict[str, Any], commands: Iterable[str]) -> None:
    """Write down when, where and by which commands records were made."""
    file = folder / RUN
    before = json.loads(file.read_text())["commands"] if file.is_file() else []
    entry = entry | {"commands": list(dict.fromkeys([*before, *commands]))}
    folder.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps(entry, indent=1))
    part.replace(file)
