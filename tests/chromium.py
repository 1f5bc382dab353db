"""Pages opened in headless Chromium, for the tests marked `browser`."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PHONE, DESK = (360, 800), (1280, 900)
TABLET, WIDE = (820, 1180), (1440, 900)
# An option of `browse`: the page as a reader with dark colours sees it.
DARK = "--blink-settings=preferredColorScheme=0"


@pytest.fixture(scope="module", autouse=True)
def chromium():
    """Without a browser there is nothing to see; in CI there must be one."""
    if CHROMIUM is None:
        words = "Chromium is not installed; tools/setup_browser.sh installs it."
        if os.environ.get("CI") == "true":
            pytest.fail(words)
        pytest.skip(words)
    return CHROMIUM


def browse(host: Path, size: tuple[int, int], *wanted: str) -> str:
    """What Chromium prints when it has opened the page `host` in a window of this size.

    A window cannot be narrower than 500 pixels: open pages in frames of the width of a phone.
    """
    width, height = size
    command = [
        str(CHROMIUM),
        "--headless=new",
        "--no-sandbox",  # which root, in a container, does not have
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--no-first-run",
        f"--user-data-dir={host.parent / 'profile'}",
        f"--window-size={max(width, 500)},{height}",
        *wanted,
        host.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def printed_pages(page: Path) -> int:
    """On how many pages Chromium prints the page."""
    paper = page.with_suffix(".pdf")
    browse(page, DESK, "--no-pdf-header-footer", f"--print-to-pdf={paper}")
    return len(re.findall(rb"/Type\s*/Page\b", paper.read_bytes()))


def measured(host: Path, size: tuple[int, int], *wanted: str) -> Any:
    """What a script of `host` has written, as JSON, into an element of the id `measured`."""
    dom = browse(host, size, "--dump-dom", *wanted)
    found = re.search(r'<pre id="measured">(.*?)</pre>', dom, flags=re.DOTALL)
    assert found, "the page was never measured"
    return json.loads(html.unescape(found[1]))
