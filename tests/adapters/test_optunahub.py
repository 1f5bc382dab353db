"""The package folder for OptunaHub: what its registry asks for, and that it works.

The hub's own loader is not installed here; a stand-in loads the package from the folder.
"""

import importlib.util
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import optuna
import pytest

from metaprior.adapters.optuna import MetaPriorSampler

ROOT = Path(__file__).parents[2]
HUB = ROOT / "optunahub"
PACKAGE = HUB / "samplers" / "metaprior"


def load_module(package: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("package", HUB / package / "__init__.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def hub(monkeypatch):
    monkeypatch.setitem(sys.modules, "optunahub", SimpleNamespace(load_module=load_module))
    before = optuna.logging.get_verbosity()
    yield
    optuna.logging.set_verbosity(before)


def test_optunahub_wrapper_is_the_sampler():
    assert load_module("samplers/metaprior").MetaPriorSampler is MetaPriorSampler


def test_optunahub_readme_has_front_matter_and_sections():
    readme = (PACKAGE / "README.md").read_text()
    _, front, body = readme.split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in front.splitlines())
    assert list(fields) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert fields["tags"].startswith("[sampler, ") and fields["license"] == "MIT License"
    assert optuna.__version__ in fields["optuna_versions"]
    for section in ("## Abstract", "## APIs", "## Installation", "## Example"):
        assert f"\n{section}\n" in body


def test_optunahub_package_has_its_files():
    assert (PACKAGE / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert "metaprior[optuna]" in (PACKAGE / "requirements.txt").read_text()


def test_optunahub_package_passes_its_own_test(hub):
    tests = runpy.run_path(str(PACKAGE / "tests" / "test_sampler.py"))
    tests["test_a_study"]()
    tests["TestMetaPriorSampler"]().test_raise_error_for_samplers_during_multi_objectives(
        tests["new_sampler"]
    )


@pytest.mark.slow
def test_optunahub_example_runs(hub, capsys):
    runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")
    assert "best of 10 trials: 0.0" in capsys.readouterr().out
