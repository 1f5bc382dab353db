"""The page as a browser shows it: on a phone, a tablet and a desk, in the dark, and on paper.

Chromium's window cannot be narrower than 500 pixels, so the page is opened in a frame of the width
of the device, and a script outside the frame measures it.
"""

import html
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

import metaprior as mp
from metaprior.methods import FPacohMap, Weighed
from metaprior.report import write_report
from tests import chromium as browser
from tests.chromium import DARK, DESK, PHONE, TABLET, WIDE
from tests.chromium import chromium as chromium
from tests.report.made_up import SPACE, findings_for, make_runs
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
// How far to the right each section and the header reach, as a share of the room for them.
const main = page.querySelector("main").getBoundingClientRect();
const style = frame.contentWindow.getComputedStyle(page.querySelector("main"));
const room = main.right - parseFloat(style.paddingRight);
const reached = [...page.querySelectorAll("section, header")].map(part => {
  const ends = [...part.querySelectorAll("*")].map(right).filter(end => end <= room + 1);
  return Math.max(...ends) / room;
});
const scales = [...page.querySelectorAll("figure > svg")].map(
  e => e.getBoundingClientRect().width / e.viewBox.baseVal.width);
// WCAG 2: (L1 + 0.05) / (L2 + 0.05) of relative luminances.
const canvas = document.createElement("canvas").getContext("2d");
const luminance = colour => {
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const linear = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => v / 255).map(
    v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const contrast = (a, b) => {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
};
const colourOf = e => frame.contentWindow.getComputedStyle(e).color;
const paper = frame.contentWindow.getComputedStyle(page.body).backgroundColor;
const card = frame.contentWindow.getComputedStyle(
  page.querySelector(".numbers > div")).backgroundColor;
const texts = [...page.querySelectorAll("h2, p, dt, dd, td, th, figcaption, li, .badge, .share")];
const contrasts = texts.flatMap(e => [contrast(colourOf(e), paper), contrast(colourOf(e), card)]);
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
  scales: scales,
  reached: reached,
  body: parseFloat(frame.contentWindow.getComputedStyle(page.querySelector("p.about")).fontSize),
  paper: paper,
  contrast: Math.min(...contrasts),
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


def measured(text: str, size: tuple[int, int], folder: Path, *wanted: str) -> dict[str, Any]:
    return browser.measured(framed(text, size, folder), size, *wanted)


SIZES = pytest.mark.parametrize(
    ("size", "columns"),
    [(PHONE, 1), (TABLET, 2), (DESK, 3), (WIDE, 3)],
    ids=["phone", "tablet", "desk", "wide"],
)


@SIZES
def test_report_fits_the_screen_and_is_legible(text, tmp_path, size, columns):
    found = measured(text, size, tmp_path)
    assert found["room"] == size[0]
    assert found["content"] <= size[0] and found["outside"] == []
    assert found["sections"] == SECTIONS and found["drawings"] == 11
    assert found["smallest"] >= SMALLEST_TEXT
    assert found["columns"] == columns
    assert found["fetched"] == []


@SIZES
def test_report_has_one_visual_scale_and_no_empty_margin(text, tmp_path, size, columns):
    found = measured(text, size, tmp_path)
    # Figures are drawn at the size at which they are shown: their text is as large as on a phone.
    assert 0.9 <= min(found["scales"]) and max(found["scales"]) <= 1.25
    assert max(found["scales"]) / min(found["scales"]) < 1.02
    assert found["body"] == 16.0
    # Every section reaches the right margin, or nearly.
    assert min(found["reached"]) > 0.9, found["reached"]


def test_report_margin_test_can_fail(text, tmp_path):
    narrow = text.replace("</style>", "#prior { width: 20rem; }</style>")
    assert min(measured(narrow, WIDE, tmp_path)["reached"]) < 0.5


def test_report_has_dark_colours_that_are_legible(text, tmp_path):
    light, dark = measured(text, DESK, tmp_path), measured(text, DESK, tmp_path, DARK)
    assert light["paper"] == "rgb(255, 255, 255)" and dark["paper"] == "rgb(22, 24, 28)"
    # WCAG 2 asks for 4.5 where text is small.
    assert light["contrast"] >= 4.5 and dark["contrast"] >= 4.5


def test_report_is_dark_on_a_dark_screen(text, tmp_path):
    shades = []
    for wanted in ((), (DARK,)):
        picture = tmp_path / f"picture-{len(wanted)}.png"
        host = framed(text, DESK, tmp_path)
        browser.browse(host, DESK, f"--screenshot={picture}", *wanted)
        shades.append(matplotlib.image.imread(picture)[:, :, :3].mean())
    assert shades[0] > 0.85 and shades[1] < 0.25


def test_report_prints_on_two_pages(text, tmp_path):
    page = tmp_path / "report.html"
    page.write_text(text, encoding="utf-8")
    assert browser.printed_pages(page) == 2


def test_report_of_24_runs_prints_on_two_pages(tmp_path):
    """As many runs as the map of those that look alike can show, and five dimensions."""
    runs = make_runs(SPACE, 24, 9)
    names = [f"batch {i + 1}" for i in range(24)]
    tasks = mp.Tasks.from_runs(runs, space=SPACE, names=names)
    prior = mp.learn(tasks, method=Weighed(FPacohMap(num_steps=1)), seed=0)
    page = write_report(replace(prior, findings=findings_for(runs)), tmp_path / "report.html")
    assert 'class="matrix dense"' in page.read_text("utf-8")
    assert browser.printed_pages(page) == 2


def test_report_page_count_can_fail(text, tmp_path):
    page = tmp_path / "long.html"
    page.write_text(text.replace("<footer>", '<p style="height: 1000mm">x</p><footer>'), "utf-8")
    assert browser.printed_pages(page) > 2


def test_report_fit_test_can_fail(text, tmp_path):
    wide = text.replace("<header>", '<header><div style="width: 2000px">wide</div>')
    found = measured(wide, PHONE, tmp_path)
    assert found["content"] >= 2000 and "wide" in found["outside"][0]


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_report_is_drawn_in_its_colours(text, tmp_path, size):
    picture = tmp_path / "picture.png"
    tall = (size[0], 7000)
    browser.browse(framed(text, tall, tmp_path), tall, f"--screenshot={picture}")
    pixels = (255 * matplotlib.image.imread(picture)[:, : size[0], :3]).round().astype(int)
    assert pixels.shape == (7000, size[0], 3)
    paper, learned, baseline = (255, 255, 255), (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)
    shares = [
        float(np.mean((pixels == colour).all(axis=2))) for colour in (paper, learned, baseline)
    ]
    assert 0.5 < shares[0] < 0.99 and shares[1] > 1e-3 and shares[2] > 1e-4
