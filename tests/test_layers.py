"""Imports point one way, and nothing heavy is imported before it is needed."""

import ast
from pathlib import Path

import pytest

import metaprior

SOURCE = Path(metaprior.__file__).parent
HEAVY = {
    *("torch", "gpytorch", "botorch", "linear_operator", "ax", "mlflow", "wandb", "ray"),
    *("optuna", "pandas", "matplotlib", "sklearn"),
}
# Packages that are themselves imported on first use, and then need it.
OWN_HOST = {
    "plots": {"matplotlib"},
    "lab": {"matplotlib"},
    "adapters.ax": {"ax", "torch", "botorch"},
    "adapters.botorch": {"torch", "gpytorch", "botorch", "linear_operator"},
    "adapters.mlflow": {"mlflow"},
    "adapters.optuna": {"optuna"},
    "adapters.sklearn": {"sklearn"},
}

# What each package may import of the others: one line for each, read from the bottom up.
ALLOWED: dict[str, set[str]] = {
    "words": set(),
    "files": set(),
    "metrics": set(),
    "findings": {"words"},
    "data": {"words", "files"},
    "plots": {"words", "data"},
    "belief": {"words", "data", "findings", "plots", "methods", "store"},
    "bo": {"words", "files", "data", "plots", "belief"},
    "gp": set(),
    "processes": {"gp"},
    "meta": {"data", "gp", "processes"},
    "methods": {"words", "data", "belief", "gp", "processes", "meta"},
    "learning": {
        *("words", "files", "data", "findings", "gp", "meta", "methods", "metrics", "belief")
    },
    "store": {"words", "files", "data", "findings", "methods", "belief"},
    "report": {
        *("__version__", "words", "files", "data", "plots", "findings", "belief", "bo", "store")
    },
    "lifelong": {"words", "files", "data", "findings", "belief", "learning", "bo", "store"},
    "adapters": {"words", "files", "data", "belief", "learning", "bo", "store", "lifelong"},
}
LIBRARY = set(ALLOWED)
# The paper uses the library and is used by its own commands only.
ALLOWED["lab"] = LIBRARY
ALLOWED["cli"] = {*LIBRARY, "lab", "metaprior", "__version__"}
ALLOWED["__init__"] = LIBRARY | {"lab"}

# Learning is compiled; the other packages import JAX in functions only, if at all.
COMPILED = {"gp", "processes", "meta", "methods", "learning", "lab"}
JAX = {"jax", "jaxlib", "equinox", "optax"}
# Modules of other packages that are themselves imported on first use, by what is compiled.
COMPILED_MODULES = {"data/_runs.py", "data/_standardise.py", "cli/_study_run.py"}

FILES = sorted(SOURCE.rglob("*.py"))
# Every package and sub-package by its dotted name: `metaprior.lab.studies`.
PACKAGES = {
    ".".join(path.relative_to(SOURCE.parent).parent.parts)
    for path in FILES
    if path.name == "__init__.py"
}


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


def foreign_modules(names: set[str], package: str) -> set[str]:
    """Those of the imported names that are in a private module of another package.

    A sub-package is a package of its own: `metaprior.lab.plots` sees the public names of
    `metaprior.lab.studies` only, and `metaprior.data.csv` those of `metaprior.data`.
    """
    found = set()
    for name in names:
        steps = name.split(".")
        # The last step is the imported name itself, which may begin with an underscore.
        private = [i for i, step in enumerate(steps[:-1]) if i > 1 and step.startswith("_")]
        if steps[0] != "metaprior" or not private:
            continue
        if ".".join(steps[: private[0]]) != package:
            found.add(name)
    return found


def package_of(path: Path) -> str:
    """The innermost package that a file is in."""
    return ".".join(path.relative_to(SOURCE.parent).parent.parts)


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_layers_of_a_module_are_below_it(path):
    names = imported(path.read_text())
    part = part_of(path)
    assert parts_of_ours(names) <= {part, *ALLOWED[part]}
    assert not foreign_modules(names, package_of(path))
    if part == "gp":
        assert "optax" not in {name.split(".")[0] for name in names}
    at_once = {name.split(".")[0] for name in imported(path.read_text(), everywhere=False)}
    package = package_of(path).removeprefix("metaprior.")
    own = {host for name in (part, package) for host in OWN_HOST.get(name, ())}
    assert not at_once & HEAVY - own
    if part not in COMPILED and str(path.relative_to(SOURCE)) not in COMPILED_MODULES:
        assert not at_once & JAX


def test_layers_cover_every_package():
    assert {part_of(path) for path in FILES} == ALLOWED.keys()


def test_layers_point_one_way():
    """No package can reach itself through what it may import. The prior is the one exception: it
    imports `store` when it is saved, and `methods` when compiled code asks for its surrogate."""
    allowed = {part: set(others) for part, others in ALLOWED.items()}
    allowed["belief"] -= {"store", "methods"}

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
    assert foreign_modules(private, "metaprior.methods") == private
    assert not foreign_modules(private, "metaprior.gp")
    public = {"metaprior.gp.cholesky", "metaprior._version", "metaprior.lab.studies.race"}
    assert not foreign_modules(public, "metaprior.methods")


@pytest.mark.parametrize(
    ("private", "owner", "inside"),
    [
        ("metaprior.lab.studies._races.race", "metaprior.lab.studies", "metaprior.lab.plots"),
        ("metaprior.adapters.optuna._trials.x", "metaprior.adapters.optuna", "metaprior.adapters"),
        ("metaprior.data.csv._sheet.Sheet", "metaprior.data.csv", "metaprior.data"),
    ],
)
def test_layers_find_a_private_module_of_a_sub_package(private, owner, inside):
    assert {owner, inside} <= PACKAGES
    assert foreign_modules({private}, inside) == foreign_modules({private}, "metaprior.cli")
    assert foreign_modules({private}, inside) == {private}
    assert not foreign_modules({private}, owner)


def test_layers_find_a_private_module_of_the_package_that_a_sub_package_is_inside_of():
    private = {"metaprior.data._points.Column"}
    for package in ("metaprior.data.csv", "metaprior.lab.plots"):
        assert package in PACKAGES and foreign_modules(private, package) == private
    assert not foreign_modules(private, "metaprior.data")
    assert not foreign_modules({"metaprior.data.Column"}, "metaprior.data.csv")


def places_of_classes(sources: dict[str, str]) -> dict[str, list[str]]:
    """For each class name, the files that define a class of that name, once per definition."""
    places: dict[str, list[str]] = {}
    for path, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(path)
    return places


def test_class_names_have_one_meaning():
    sources = {str(path.relative_to(SOURCE)): path.read_text() for path in FILES}
    places = places_of_classes(sources)
    assert "Optimizer" in places
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_class_names_find_a_name_defined_twice():
    sources = {
        "a.py": "class Race: ...",
        "b.py": "def f():\n    class Race: ...",
        "c.py": "Race = 1",
    }
    assert places_of_classes(sources) == {"Race": ["a.py", "b.py"]}
