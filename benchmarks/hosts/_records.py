"""Records of a folder as one value, and as one small file."""

import gzip
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# What the page in the docs is made of.
PACKED = Path(__file__).parent / "records.json.gz"
COMMANDS = "commands.txt"
TREES = Path("trees") / "trees.json"


@dataclass(frozen=True)
class Records:
    """What a folder holds.

    - `runs`: one entry per cell and method; `fits`: one per cell.
    - `trees`: how well the regressor predicts rows it has not seen, by data set.
    - `commands`: that were run; `made`: on which day the last of it was written.
    """

    runs: list[dict[str, Any]]
    fits: list[dict[str, Any]]
    trees: dict[str, dict[str, float]]
    commands: list[str]
    made: str


def read(place: Path) -> Records:
    """The records of a folder, or of a file that `pack` wrote."""
    if place.is_file():
        return Records(**json.loads(gzip.decompress(place.read_bytes())))
    files = [*place.glob("*/*.json")]
    if not files:
        raise ValueError(f"There are no records in {place}; make them with `run --out {place}`.")
    told, trees = place / COMMANDS, place / TREES
    newest = max(file.stat().st_mtime for file in files)
    return Records(
        runs=[json.loads(file.read_text()) for file in sorted(place.glob("records/*.json"))],
        fits=[json.loads(file.read_text()) for file in sorted(place.glob("fits/*.json"))],
        trees=json.loads(trees.read_text()) if trees.is_file() else {},
        commands=told.read_text().splitlines() if told.is_file() else [],
        made=datetime.fromtimestamp(newest, UTC).strftime("%d %B %Y").lstrip("0"),
    )


def pack(records: Records, file: Path) -> None:
    """Write records to one compressed file, the same bytes for the same records."""
    text = json.dumps(asdict(records), separators=(",", ":"))
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def unpack(file: Path, place: Path) -> None:
    """Write the records of a packed file to a folder, where `run` and `fits` continue them; what
    the folder has already is replaced."""
    records = read(file)
    for record in records.runs:
        head = (record["family"], record["past"], record["seed"], record["method"])
        write(run_file(place, *head), record)
    for record in records.fits:
        name = f"{record['family']}-{record['past']}-{record['seed']}"
        write(fit_file(place, name), record)
    if records.trees:
        write(place / TREES, records.trees)
    (place / COMMANDS).write_text("".join(f"{line}\n" for line in records.commands))


def run_file(place: Path, family: str, past: int | None, seed: int, method: str) -> Path:
    """Where the runs of a method on one cell are kept; `past` is `None` for a method that knows
    nothing of the past."""
    size = "any" if past is None else past
    name = method.replace(" ", "_").replace(",", "")
    return place / "records" / f"{family}-{size}-{seed}--{name}.json"


def fit_file(place: Path, cell: str) -> Path:
    """Where the times of a cell are kept."""
    return place / "fits" / f"{cell}.json"


def note_command(place: Path, command: str) -> None:
    """Remember a command that adds records to a folder."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / COMMANDS).open("a") as file:
        file.write(command + "\n")


def write(file: Path, record: Any) -> None:
    """Write one record, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps(record))
    part.replace(file)
