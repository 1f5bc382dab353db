"""Draws docs/images/report.png: the report on a prior of a simulated reaction, in Chromium.

    python tools/make_report_image.py

Fourteen batches of one reaction, 12 to 19 settings each; the ninth has lost its catalyst.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import metaprior as mp
from metaprior.data import Quantity
from metaprior.report import write_report

OUT = Path(__file__).parents[1] / "docs" / "images" / "report.png"
SPACE = mp.Space(
    temperature=mp.Real(40.0, 120.0),
    hours=mp.Real(0.5, 24.0, log=True),
    catalyst=mp.Real(0.1, 5.0, log=True),
    solvent=mp.Categorical(["DMF", "THF", "toluene"]),
    stirring=mp.Integer(200, 1000, step=100),
)
LOSS = {"DMF": 0.0, "THF": 9.0, "toluene": 16.0}
# The page on a desk and on a phone, in pixels of the screen.
DESK, PHONE, HEIGHT, MARGIN = 1280, 360, 1240, 20
GREY = (214, 214, 214)


def reaction_yield(point, shift, strength, level):
    """In per cent; the best temperature, the activity of the catalyst and the level differ."""
    heat = (point["temperature"] - 85.0 - shift) / 22.0
    time = np.log(point["hours"] / 7.0) / 1.1 - 0.3 * heat
    amount = np.log(point["catalyst"] / 1.2) / 1.6 - strength
    top = 78.0 * np.exp(-0.5 * (heat**2 + time**2 + 0.5 * amount**2))
    return level + top - LOSS[point["solvent"]] + 0.004 * (point["stirring"] - 600)


def batches():
    """The past runs."""
    rng = np.random.default_rng(3)
    runs = []
    for batch in range(14):
        task = (rng.normal(0.0, 6.0), rng.normal(0.0, 0.3), rng.normal(8.0, 3.0))
        task = (-45.0, 1.5, 0.0) if batch == 8 else task
        points = SPACE.decode(rng.uniform(size=(int(rng.integers(12, 20)), SPACE.num_columns)))
        values = [reaction_yield(point, *task) + rng.normal(0.0, 1.2) for point in points]
        runs.append((points, np.round(values, 1)))
    return mp.Tasks.from_runs(
        runs,
        space=SPACE,
        names=[f"batch-{2031 + batch}" for batch in range(14)],
        quantity=Quantity("yield_pct", "%"),
    )


def screenshot(report: Path, width: int) -> Image.Image:
    """The top of the page at this width; a frame, since windows are at least 500 pixels wide."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium, "Chromium is not installed; tools/setup_browser.sh installs it."
    host, picture = report.with_suffix(f".{width}.html"), report.with_suffix(f".{width}.png")
    style = f"border: 0; display: block; width: {width}px; height: {HEIGHT}px"
    host.write_text(
        f'<!DOCTYPE html><body style="margin: 0"><iframe src="{report.name}" style="{style}">'
    )
    subprocess.run(
        [
            *(chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--disable-dev-shm-usage", f"--user-data-dir={report.parent / 'profile'}"),
            *(f"--window-size={max(width, 500)},{HEIGHT}", f"--screenshot={picture}"),
            host.as_uri(),
        ],
        check=True,
        capture_output=True,
    )
    return Image.open(picture).convert("RGB").crop((0, 0, width, HEIGHT))


def main() -> None:
    prior = mp.learn(batches(), budget="fast", seed=0)
    with tempfile.TemporaryDirectory() as folder:
        report = write_report(prior, Path(folder) / "report.html")
        shots = [screenshot(report, width) for width in (DESK, PHONE)]
    paper = Image.new("RGB", (DESK + PHONE + 3 * MARGIN, HEIGHT + 2 * MARGIN), GREY)
    paper.paste(shots[0], (MARGIN, MARGIN))
    paper.paste(shots[1], (DESK + 2 * MARGIN, MARGIN))
    paper.quantize(64, dither=Image.Dither.NONE).save(OUT, optimize=True)
    print(f"{OUT}: {OUT.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
