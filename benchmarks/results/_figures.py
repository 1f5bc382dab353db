"""The figures of the page, drawn from the kept records by the reports of the studies."""

import tempfile
from pathlib import Path

from PIL import Image

from benchmarks.results._kept import Kept, read_kept
from benchmarks.results._statistics import DataFrame
from metaprior.lab.plots import report_results
from metaprior.lab.studies import StudyResults

LARGEST = 250_000


def draw_figures(records: Path, images: Path) -> list[Path]:
    """Draw all figures into `images`, as PNG."""
    images.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, (frame, figures) in _figures(read_kept(records)).items():
        if frame.empty:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            report_results(StudyResults(records, {"kind": kind}, frame), Path(scratch))
            for drawn, figure in figures.items():
                if (source := Path(scratch) / f"{drawn}.png").is_file():
                    paths.append(images / f"{figure}.png")
                    _shrink(source, paths[-1])
    for path in paths:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"{path} has {path.stat().st_size} bytes; draw it smaller.")
    return paths


def _figures(kept: Kept) -> dict[str, tuple[DataFrame, dict[str, str]]]:
    """By kind of study: records with all that its report needs, and the figures to be taken from
    it, by their names on the page. Variants are in tables alone: figures have room for few."""
    regrets = {"simple-regret": "offline-simple-regret"}
    regrets |= {"inference-regret": "offline-inference-regret"}
    # The records are of whole runs, and the coverage of all tasks together.
    lifelong = kept.lifelong.assign(step=1)
    coverage = kept.coverage.assign(seed=0, task=0, calibration_error=0.0)
    return {
        "offline": (_plain(kept.offline), regrets),
        "lifelong": (
            _plain(lifelong.assign(sequence=lifelong["task"])),
            {"end-of-run-regret": "lifelong-end-of-run-regret"},
        ),
        "calibration": (_plain(coverage), {"calibration": "calibration"}),
    }


def _plain(records: DataFrame) -> DataFrame:
    return records[~records["method"].astype(str).str.contains("+", regex=False)]


def _shrink(source: Path, target: Path) -> None:
    """A copy with a palette of 256 colours: a third of the size, and no difference to be seen."""
    with Image.open(source) as image:
        image.convert("RGB").quantize(256).save(target, optimize=True)
