"""Imports point one way, and nothing heavy is imported before somebody asks for it."""

import ast
from pathlib import Path

import pytest

import metaprior

SOURCE = Path(metaprior.__file__).parent
CHAIN = ("data", "gp", "processes", "meta", "methods", "bo", "studies", "cli")
# Used by everybody, and using nobody.
FREE = {"_precision", "_ascent", "_file_lock"}
HEAVY = {"torch", "gpytorch", "botorch", "optuna", "pandas", "matplotlib", "sklearn"}
# Parts that are themselves imported on first use, and then need it.
OWN_HOST = {"plots": {"matplotlib"}, "adapters": {"optuna"}}

# What each part may import of the others; a part that is not named here may import everything.
ALLOWED = {part: {*CHAIN[: i + 1], *FREE} for i, part in enumerate(CHAIN[:-1])}
ALLOWED["bo"] |= {"_prior"}
ALLOWED["studies"] |= {"_prior", "_learn", "environments", "metrics", "store", "learning"}
ALLOWED |= {
    "_precision": set(),
    "_ascent": set(),
    "_file_lock": set(),
    "metrics": {"metrics"},
    "plots": {"plots", "metrics"},
    "environments": {"environments", *FREE, "data"},
    "tables": {"tables", *FREE, "data"},
    "learning": {"learning", *ALLOWED["methods"], "metrics", "store"},
    "report": {"report", *FREE, "__version__", "_prior", "data", "gp", "metrics", "plots", "store"},
}

FILES = sorted(SOURCE.rglob("*.py"))


def imported(source: str, *, everywhere: bool = True) -> set[str]:
    """Dotted names of all modules that `source` imports; else only those it imports at once."""
    tree = ast.parse(source)
    if everywhere:
        nodes = list(ast.walk(tree))
    else:
        inside = [
            node
            for function in ast.walk(tree)
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            for node in ast.walk(function)
        ]
        nodes = [node for node in ast.walk(tree) if node not in inside]
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name their module in full"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def parts_of_ours(names: set[str]) -> set[str]:
    """The parts of the package among imported names: `metaprior.gp._linalg.x` is of `gp`, and
    the package itself is a part that no layer may import."""
    ours = [name.split(".") for name in names if name.split(".")[0] == "metaprior"]
    return {name[1] if len(name) > 1 else "metaprior" for name in ours}


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path):
    names = imported(path.read_text())
    part = part_of(path)
    if part in ALLOWED:
        assert parts_of_ours(names) <= ALLOWED[part]
    if part == "gp":
        assert "optax" not in {name.split(".")[0] for name in names}
    at_once = {name.split(".")[0] for name in imported(path.read_text(), everywhere=False)}
    assert not at_once & HEAVY - OWN_HOST.get(part, set())


def test_every_layer_is_looked_at():
    parts = {part_of(path) for path in FILES}
    assert ALLOWED.keys() <= parts and {"learning", "report", "tables"} <= ALLOWED.keys()


def test_a_violation_would_be_found():
    source = (
        "import torch\ndef later():\n    import pandas\n    from metaprior.bo import Optimizer\n"
    )
    assert imported(source) == {"torch", "pandas", "metaprior.bo.Optimizer"}
    assert imported(source, everywhere=False) == {"torch"}
    assert not parts_of_ours(imported(source)) <= ALLOWED["gp"]
    assert parts_of_ours({"metaprior"}) == {"metaprior"}
    assert parts_of_ours({"metaprior.bo"}) == parts_of_ours({"metaprior.bo._loop.f"}) == {"bo"}
