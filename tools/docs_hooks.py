"""What `mkdocs build` adds to the pages in docs/: the README, CONTRIBUTING and CHANGELOG as pages,
and the commands of the command line with their options."""

import re
import subprocess
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# Files at the root of the repository, where GitHub looks for them, and their pages.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
COMMANDS = "<!-- commands -->"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in PAGES.items():
        text = _links_from_docs((ROOT / source).read_text("utf-8"))
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if COMMANDS not in markdown:
        return markdown
    return markdown.replace(COMMANDS, _commands())


def _links_from_docs(text: str) -> str:
    """`text`, which lies at the root, with its links as a page in docs/ writes them."""
    for source, page in PAGES.items():
        text = text.replace(f"]({source}", f"]({page}")
    return text.replace("](docs/", "](")


def _commands() -> str:
    """All commands, one heading each, as Typer's own generator writes them."""
    done = subprocess.run(
        [sys.executable, "-m", "typer", "metaprior.cli._app", "utils", "docs"]
        + ["--name", "metaprior"],
        capture_output=True,
        text=True,
        check=True,
    )
    # The page has a title and a table of contents of its own, and says that there is --help.
    without_title = done.stdout.split("\n", 1)[1]
    without_lists = re.sub(r"\*\*Commands\*\*:\n\n(\* .*\n)+\n", "", without_title)
    return re.sub(r"^\* `--help`: .*\n", "", without_lists, flags=re.MULTILINE)
