"""The documentation as a reader opens it: built once, and its pages opened in a browser from the
folder, without a server and without a network."""

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import DESK, PHONE, measured
from tests.chromium import chromium as chromium

ROOT = Path(__file__).parents[2]
OFFLINE = (
    "--allow-file-access-from-files",  # so that one file may look into another
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=20000",
)
# Delimiters that pymdownx.arithmatex writes around a formula.
FORMULA = re.compile(r'class="arithmatex">\s*\\[\[(]')

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MEASURE = r"""
const measure = frame => {
  const page = frame.contentDocument;
  const shown = e => { const r = e.getBoundingClientRect(); return r.width > 1 && r.height > 1; };
  const formulas = [...page.querySelectorAll(".arithmatex")];
  return {
    formulas: formulas.length,
    rendered: formulas.filter(e => e.querySelector(".katex-html") && shown(e)).length,
    errors: page.querySelectorAll(".katex-error").length,
    raw: (page.querySelector("article").innerText.match(/\\[()\[\]]/g) || []).length,
    fonts: [...page.fonts].filter(f => f.family.startsWith("KaTeX") && f.status == "loaded").length,
    room: page.documentElement.clientWidth,
    content: page.documentElement.scrollWidth,
    fetched: frame.contentWindow.performance.getEntriesByType("resource").map(e => e.name),
  };
};
window.addEventListener("load", async () => {
  const frames = [...document.querySelectorAll("iframe")];
  await Promise.all(frames.map(frame => frame.contentDocument.fonts.ready));
  const result = document.createElement("pre");
  result.id = "measured";
  result.textContent = JSON.stringify(frames.map(measure));
  document.body.append(result);
});
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
        + ["--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )
    return folder


def looks(pages: list[Path], size: tuple[int, int], folder: Path) -> list[dict[str, Any]]:
    """What the script finds in each of `pages`, opened in a frame of this size, offline."""
    width, height = size
    frames = "".join(
        f'<iframe style="display: block; border: 0; width: {width}px; height: {height}px" '
        f'src="{page.as_uri()}"></iframe>'
        for page in pages
    )
    host = folder / "host.html"
    host.write_text(
        f'<!DOCTYPE html><html lang="en"><title>host</title><body style="margin: 0">{frames}'
        f"<script>{MEASURE}</script></body></html>",
        encoding="utf-8",
    )
    return measured(host, size, *OFFLINE)


def with_formulas(site: Path) -> list[Path]:
    return [page for page in sorted(site.rglob("*.html")) if FORMULA.search(page.read_text())]


def test_site_renders_every_formula_without_a_network(site, tmp_path):
    pages = with_formulas(site)
    names = {str(page.relative_to(site)) for page in pages}
    assert {"concepts/maths.html", "concepts/framework.html", "paper/methods.html"} <= names
    for page, found in zip(pages, looks(pages, DESK, tmp_path), strict=True):
        assert found["rendered"] == found["formulas"] > 0, page
        assert found["errors"] == found["raw"] == 0, page
        assert found["fonts"] > 0, page
        assert all(name.startswith("file:") for name in found["fetched"]), page


def test_site_without_the_script_leaves_formulas_raw(site, tmp_path):
    """The negative control of the test above."""
    copy = tmp_path / "site"
    shutil.copytree(site, copy)
    (copy / "assets/katex/katex.min.js").unlink()
    [found] = looks([copy / "concepts/maths.html"], DESK, tmp_path)
    assert found["rendered"] == 0 and found["raw"] > 0


def test_site_pages_fit_a_phone(site, tmp_path):
    pages = [site / name for name in ("index.html", "architecture.html", "concepts/maths.html")]
    for page, found in zip(pages, looks(pages, PHONE, tmp_path), strict=True):
        assert found["room"] == PHONE[0] and found["content"] <= PHONE[0], page


def test_command_reference_has_every_command_and_option(site):
    text = html.unescape(re.sub(r"<[^>]+>", "", (site / "reference/cli.html").read_text()))
    for command in ("demo", "learn", "report", "suggest", "tell", "status", "study", "env"):
        assert f"metaprior {command} [OPTIONS]" in text, command
    for option in ("--budget", "--finish", "--restore", "--dask"):
        assert option in text, option
