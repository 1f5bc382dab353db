"""Messages and pages name commands and options that exist."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from metaprior.cli._app import app

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
CODE = sorted((ROOT / "src").rglob("*.py"))
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def texts_of(source: str) -> list[str]:
    """The texts in a module, with anything that is filled in left blank."""
    nodes = list(ast.walk(ast.parse(source)))
    joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in joined for part in node.values}
    whole = [
        "".join(str(p.value) if isinstance(p, ast.Constant) else "X" for p in node.values)
        for node in joined
    ]
    single = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in parts)
    return whole + [node.value for node in single if isinstance(node.value, str)]


def commands_in(text: str) -> list[str]:
    """What stands after `metaprior` in code, in a line or in a block."""
    blocks = "".join(BLOCK.findall(text)).replace("\\\n", " ")
    in_lines = re.findall(r"`metaprior ([^`]*)`", BLOCK.sub("", text))
    return in_lines + re.findall(r"^metaprior (.*)$", blocks, re.MULTILINE)


def inside(command: Any) -> dict[str, Any]:
    """The commands of a group; a command that is no group has none."""
    return getattr(command, "commands", {})


def faults(text: str) -> list[str]:
    """Commands in a text that are unknown, and options that their command does not have."""
    found = []
    for line in commands_in(text):
        words, command = line.split("#")[0].replace(",", " ").split(), get_command(app)
        options = {name for parameter in command.params for name in parameter.opts}
        while words and re.fullmatch(r"[a-z]+", words[0]) and (inner := inside(command)):
            command = inner.get(words.pop(0))
            if command is None:
                found.append(line)
                break
            options |= {name for parameter in command.params for name in parameter.opts}
        else:
            named = {word.split("=")[0] for word in words if re.match(r"--[a-z]", word)}
            found += [f"{option} of {line}" for option in named - options - {"--help"}]
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_name_options_that_exist(path):
    assert faults(path.read_text("utf-8")) == []


def test_messages_name_options_that_exist():
    texts = [text for path in CODE for text in texts_of(path.read_text("utf-8"))]
    assert len([command for text in texts for command in commands_in(text)]) > 10
    assert [fault for text in texts for fault in faults(text)] == []


def test_faults_finds_an_unknown_option_and_an_unknown_command():
    assert faults("use `metaprior learn --output x`") == ["--output of learn --output x"]
    assert faults("```console\nmetaprior forget --all\n```") == ["forget --all"]
    assert faults("`metaprior study offline --smoke --out x`") == []
