"""`metaprior env`: which families there are, and how to fetch the original tables."""

import json
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as Grid

from metaprior.cli._stages import Stages
from metaprior.lab.environments import FIGSHARE, Family, download, known_families, remote_tables


def list_families(*, as_json: bool) -> None:
    """Print every family with its sizes."""
    described = [_described(family) for family in known_families().values()]
    if as_json:
        print(json.dumps(described, indent=2))
        return
    grid = Grid(box=box.SIMPLE_HEAD)
    grid.add_column("family")
    for heading in ("d", "n", "T", "training", "validation", "test"):
        grid.add_column(heading, justify="right")
    grid.add_column("values come from")
    for each in described:
        tasks = ["any" if count is None else str(count) for count in each["tasks"].values()]
        sizes = (each["dimensions"], each["num_tasks"], each["run_length"])
        grid.add_row(each["name"], *map(str, sizes), *tasks, each["provenance"])
    console = Console()
    console.print(grid)
    console.print(
        "d: encoded dimensions; n, T: past tasks and points per task in the benchmark; then the "
        "available tasks.",
        highlight=False,
    )


def fetch_tables(to: Path, *, url: str | None) -> None:
    """Download the original tables to `to`, showing progress, and say how to use them."""
    tables = remote_tables(FIGSHARE if url is None else url)
    with Stages(len(tables), Console(stderr=True)) as stages:
        for table in tables:
            with stages.stage(f"{table.file_name} ({table.size / 1e6:.1f} MB)") as advance:
                download(table, to, on_progress=advance)
    print(f'Use them with metaprior.lab.environments.Table("{tables[0].learner}", source="{to}").')


def _described(family: Family) -> dict[str, Any]:
    return {
        "name": family.name,
        "dimensions": family.space.num_columns,
        "num_tasks": family.num_tasks,
        "run_length": family.run_length,
        "tasks": family.available._asdict(),
        "provenance": family.provenance,
    }
