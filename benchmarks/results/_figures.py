"""The figures of the page, drawn anew from the records: those of a report may be older."""

import tempfile
from pathlib import Path

import pandas as pd
from PIL import Image

from metaprior.lab.plots import report_results
from metaprior.lab.studies import read_results

# By the name of a figure on the page: the figure of a report, and the studies it is drawn from.
FIGURES = {
    "offline-simple-regret": ("simple-regret", ("offline", "offline-rwgp")),
    "offline-inference-regret": ("inference-regret", ("offline", "offline-rwgp")),
    "lifelong-end-of-run-regret": ("end-of-run-regret", ("lifelong",)),
    "lifelong-cumulative-inference-regret": ("cumulative-inference-regret", ("lifelong",)),
    "calibration": ("calibration", ("calibration",)),
}
LARGEST = 250_000


def draw_figures(studies: Path, images: Path) -> list[Path]:
    """Draw all figures into `images`, as PNG."""
    images.mkdir(parents=True, exist_ok=True)
    paths = []
    with tempfile.TemporaryDirectory() as scratch:
        for names in dict.fromkeys(names for _, names in FIGURES.values()):
            report = _report(studies, names, Path(scratch) / names[0])
            for figure, (drawn, of) in FIGURES.items():
                if of == names:
                    path = images / f"{figure}.png"
                    _shrink(report / f"{drawn}.png", path)
                    paths.append(path)
    for path in paths:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"{path} has {path.stat().st_size} bytes; draw it smaller.")
    return paths


def _shrink(source: Path, target: Path) -> None:
    """A copy with a palette of 256 colours: a third of the size, and no difference to be seen."""
    with Image.open(source) as image:
        image.convert("RGB").quantize(256).save(target, optimize=True)


def _report(studies: Path, names: tuple[str, ...], folder: Path) -> Path:
    """The report of several studies of one kind as if they were one, in `folder`."""
    found = [read_results(studies / name) for name in names]
    records = pd.concat([each.records for each in found], ignore_index=True)
    report_results(found[0]._replace(records=records), folder)
    return folder
