"""The code blocks of the README and of the quick start run, in order, as they stand."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "docs/adding-a-method.md"])
def test_code_blocks_run(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / name).read_text())
    assert blocks, f"{name} has no python block"
    exec(compile("\n".join(blocks), name, "exec"), {"__name__": "__document__"})
    assert "Best(x=" in capsys.readouterr().out


def test_pictures_exist():
    for name in ("README.md", "docs/index.md"):
        for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", (ROOT / name).read_text()):
            assert (ROOT / name).parent.joinpath(picture).is_file(), picture
