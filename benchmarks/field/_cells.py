"""All methods on the new tasks of one cell: what a process of the benchmark does."""

import json
from pathlib import Path

from benchmarks.field._methods import METHODS, Setting
from benchmarks.field._past import Cell
from benchmarks.field._pools import family_named
from benchmarks.field._runs import NUM_QUERIES


def records_of_cell(
    cell: Cell, methods: list[str], budget: str, lcbench: Path | None, out: Path
) -> None:
    """All runs of a cell that are not there yet."""
    family = family_named(cell.family, lcbench)
    setting = Setting(cell, family, out / "priors", budget)
    for name in methods:
        file = out / "records" / f"{cell.name}--{name.replace(' ', '_')}.json"
        if file.is_file():
            continue
        search = METHODS[name](setting)
        records = []
        for pool in cell.tasks(family)[1]:
            found = search(pool, NUM_QUERIES, cell.seed)
            records.append(found | {"task": pool.name, "best": max(pool.y), "gap": pool.gap})
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(json.dumps({"cell": vars(cell), "method": name, "runs": records}))
        part.replace(file)
