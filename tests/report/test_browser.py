"""The page as a browser shows it, on a phone and on a desk.

Chromium's window cannot be narrower than 500 pixels, so the page is opened in a frame of the width
of the device, and a script outside the frame measures it.
"""

import html
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from metaprior.report import write_report
from tests import chromium as browser
from tests.chromium import DESK, PHONE
from tests.chromium import chromium as chromium
from tests.report.test_report_page import SECTIONS

# The smallest text of a figure that is still read without zooming, in pixels.
SMALLEST_TEXT = 9.0

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MEASURE = """
const frame = document.getElementById("page");
const page = frame.contentDocument;
const right = e => e.getBoundingClientRect().right;
const outside = [...page.querySelectorAll("body *")].filter(
  e => right(e) > frame.clientWidth + 1 && !e.closest(".scroll, svg"));
const sizes = [...page.querySelectorAll("svg text")].map(e => {
  const svg = e.ownerSVGElement;
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return scale * parseFloat(frame.contentWindow.getComputedStyle(e).fontSize);
});
const columns = page.querySelector("#held-out .figures");
const result = document.createElement("pre");
result.id = "measured";
result.textContent = JSON.stringify({
  content: page.documentElement.scrollWidth,
  room: page.documentElement.clientWidth,
  outside: outside.map(e => e.outerHTML.slice(0, 80)),
  sections: [...page.querySelectorAll("section")].filter(
    e => e.getBoundingClientRect().height > 40).map(e => e.id),
  drawings: page.querySelectorAll("figure > svg").length,
  smallest: Math.min(...sizes),
  columns: columns ? getComputedStyle(columns).gridTemplateColumns.split(" ").length : 0,
  fetched: frame.contentWindow.performance.getEntriesByType("resource").map(e => e.name),
});
document.body.append(result);
"""


@pytest.fixture(scope="module")
def text(prior, tmp_path_factory):
    return write_report(prior, tmp_path_factory.mktemp("b") / "report.html").read_text("utf-8")


def framed(text: str, size: tuple[int, int], folder: Path) -> Path:
    """A page that shows `text` in a frame of this size and measures it."""
    width, height = size
    host = folder / f"host-{width}.html"
    host.write_text(
        '<!DOCTYPE html><html lang="en"><title>host</title><body style="margin: 0">'
        f'<iframe id="page" style="display: block; border: 0; width: {width}px; '
        f'height: {height}px" srcdoc="{html.escape(text)}"></iframe>'
        f'<script>window.addEventListener("load", () => {{ {MEASURE} }});</script></body></html>',
        encoding="utf-8",
    )
    return host


def measured(text: str, size: tuple[int, int], folder: Path) -> dict[str, Any]:
    return browser.measured(framed(text, size, folder), size)


@pytest.mark.parametrize(("size", "columns"), [(PHONE, 1), (DESK, 3)], ids=["phone", "desk"])
def test_report_fits_the_screen_and_is_legible(text, tmp_path, size, columns):
    found = measured(text, size, tmp_path)
    assert found["room"] == size[0]
    assert found["content"] <= size[0] and found["outside"] == []
    assert found["sections"] == SECTIONS and found["drawings"] == 11
    assert found["smallest"] >= SMALLEST_TEXT
    assert found["columns"] == columns
    assert found["fetched"] == []


def test_report_fit_test_can_fail(text, tmp_path):
    wide = text.replace("<header>", '<header><div style="width: 2000px">wide</div>')
    found = measured(wide, PHONE, tmp_path)
    assert found["content"] >= 2000 and "wide" in found["outside"][0]


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_report_is_drawn_in_its_colours(text, tmp_path, size):
    picture = tmp_path / "picture.png"
    tall = (size[0], 4000)
    browser.browse(framed(text, tall, tmp_path), tall, f"--screenshot={picture}")
    pixels = (255 * matplotlib.image.imread(picture)[:, : size[0], :3]).round().astype(int)
    assert pixels.shape == (4000, size[0], 3)
    paper, learned, baseline = (255, 255, 255), (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)
    shares = [
        float(np.mean((pixels == colour).all(axis=2))) for colour in (paper, learned, baseline)
    ]
    assert 0.5 < shares[0] < 0.99 and shares[1] > 1e-3 and shares[2] > 1e-4
