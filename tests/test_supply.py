"""What is installed: pinned by hashes, under licences that are listed."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# Extras for those who work on metaprior; none of their packages is needed to use it.
OF_DEVELOPERS = {"test", "oracle", "docs", "dev"}


def names_of(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[><=!~; ]", requirement)[0] for requirement in requirements}


def locked_blocks() -> list[str]:
    """One text for each release in the lock: its name, version and hashes."""
    text = (ROOT / "requirements.lock").read_text("utf-8")
    return re.findall(r"^[A-Za-z].*\n(?: +--hash.*\n)*", text, flags=re.MULTILINE)


def test_lock_has_a_version_and_hashes_for_every_release():
    blocks = locked_blocks()
    assert len(blocks) > 50
    for block in blocks:
        assert re.match(r"[A-Za-z0-9._-]+==[^\s]+( ;[^\\]*)? \\\n", block), block.split("\n")[0]
        hashes = re.findall(r"--hash=sha256:[0-9a-f]{64}\b", block)
        assert hashes and len(hashes) == block.count("--hash="), block.split("\n")[0]


def test_lock_pins_every_direct_dependency():
    pinned = {re.split(r"[=\[]", block)[0].lower() for block in locked_blocks()}
    extras = PROJECT["optional-dependencies"]
    assert names_of(PROJECT["dependencies"] + extras["test"] + extras["plots"]) <= pinned


def test_licences_of_all_direct_dependencies_are_listed():
    page = (ROOT / "docs" / "licences.md").read_text("utf-8")
    rows = [line.split("|")[1:4] for line in page.splitlines() if line.startswith("| ")]
    listed = {name.strip(): extras for names, extras, _ in rows for name in names.split(",")}
    for name in names_of(PROJECT["dependencies"]):
        assert "always" in listed.get(name, ""), f"{name} is missing"
    for extra, requirements in PROJECT["optional-dependencies"].items():
        if extra not in OF_DEVELOPERS:
            for name in names_of(requirements):
                assert f"`{extra}`" in listed.get(name, ""), f"{name} of {extra} is missing"


def test_security_says_how_to_report_and_what_is_trusted():
    page = (ROOT / "SECURITY.md").read_text("utf-8")
    assert "report" in page and "checksums" in page and "docs/reference/files.md" in page
