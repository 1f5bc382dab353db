"""Imports point one way, and nothing heavy is imported before somebody asks for it."""

import ast
from pathlib import Path

import pytest

import metaprior

SOURCE = Path(metaprior.__file__).parent
HEAVY = {"torch", "gpytorch", "botorch", "optuna", "pandas", "matplotlib", "sklearn"}
# Packages that are themselves imported on first use, and then need it.
OWN_HOST = {"plots": {"matplotlib"}, "lab": {"matplotlib"}, "adapters": {"optuna"}}

# What each package may import of the others: one line for each, read from the bottom up.
ALLOWED: dict[str, set[str]] = {
    "words": set(),
    "files": set(),
    "metrics": set(),
    "plots": set(),
    "data": {"words", "files"},
    "gp": set(),
    "processes": {"gp"},
    "meta": {"data", "gp", "processes"},
    "methods": {"data", "gp", "processes", "meta"},
    "belief": {"words", "data", "gp", "methods", "store"},
    "learning": {"words", "data", "gp", "meta", "methods", "metrics", "belief"},
    "bo": {"words", "data", "gp", "methods", "belief"},
    "store": {"words", "files", "data", "gp", "methods", "belief", "learning"},
    "report": {"__version__", "words", "files", "data", "plots", "belief", "learning", "store"},
    "lifelong": {"words", "files", "data", "methods", "belief", "learning", "bo", "store"},
    "adapters": {"words", "files", "data", "belief", "learning", "bo", "store", "lifelong"},
}
LIBRARY = set(ALLOWED)
# The paper uses the library and is used by its own commands only.
ALLOWED["lab"] = LIBRARY
ALLOWED["cli"] = {*LIBRARY, "lab", "metaprior", "__version__"}
ALLOWED["__init__"] = LIBRARY | {"lab"}

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


def foreign_modules(names: set[str], part: str) -> set[str]:
    """Those of the imported names that are in a private module of another package."""
    found = set()
    for name in names:
        steps = name.split(".")
        # The last step is the imported name itself, which may well begin with an underscore.
        inner = any(step.startswith("_") for step in steps[2:-1])
        if steps[0] == "metaprior" and inner and steps[1] != part:
            found.add(name)
    return found


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path):
    names = imported(path.read_text())
    part = part_of(path)
    assert parts_of_ours(names) <= {part, *ALLOWED[part]}
    assert not foreign_modules(names, part)
    if part == "gp":
        assert "optax" not in {name.split(".")[0] for name in names}
    at_once = {name.split(".")[0] for name in imported(path.read_text(), everywhere=False)}
    assert not at_once & HEAVY - OWN_HOST.get(part, set())


def test_layers_cover_every_package():
    assert {part_of(path) for path in FILES} == ALLOWED.keys()


def test_layers_point_one_way():
    """No package can reach itself through what it may import; the prior that saves itself is the
    one exception, and imports `store` when it does."""
    allowed = {part: set(others) for part, others in ALLOWED.items()}
    allowed["belief"] -= {"store"}

    def reached(part: str, seen: frozenset[str] = frozenset()) -> set[str]:
        below = allowed.get(part, set()) - seen
        return below | {far for near in below for far in reached(near, seen | below)}

    for part in LIBRARY:
        assert part not in reached(part)
        assert not reached(part) & {"lab", "cli"}


def test_layers_find_a_violation():
    source = (
        "import torch\ndef later():\n    import pandas\n    from metaprior.bo import Optimizer\n"
    )
    assert imported(source) == {"torch", "pandas", "metaprior.bo.Optimizer"}
    assert imported(source, everywhere=False) == {"torch"}
    assert not parts_of_ours(imported(source)) <= ALLOWED["gp"]
    assert parts_of_ours({"metaprior"}) == {"metaprior"}
    assert parts_of_ours({"metaprior.bo"}) == parts_of_ours({"metaprior.bo._loop.f"}) == {"bo"}
    private = imported("def later():\n    from metaprior.gp._linalg import cholesky\n")
    assert foreign_modules(private, "methods") == private
    assert not foreign_modules(private, "gp")
    assert not foreign_modules({"metaprior.gp.cholesky", "metaprior._version"}, "methods")
