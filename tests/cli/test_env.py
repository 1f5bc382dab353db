"""`metaprior env`: the list of families, and fetching from a server on this machine."""

import json

import pytest

from tests.commands import invoke
from tests.lab.environments.figshare_server import FILES, figshare


@pytest.fixture
def served():
    with figshare() as served:
        yield served


def test_env_list_names_every_family_with_its_sizes():
    found = invoke("env", "list")
    assert found.exit_code == 0, found.stderr
    lines = {line.split()[0]: line.split() for line in found.stdout.splitlines() if line.strip()}
    assert lines["branin"][1:7] == ["2", "20", "20", "any", "any", "any"]
    assert lines["xgboost"][1:] == ["10", "15", "50", "15", "3", "12", "shipped", "table"]


def test_env_list_as_json():
    families = json.loads(invoke("env", "list", "--json").stdout)
    assert [family["name"] for family in families] == [
        *("mixture1d", "branin", "camelback", "hartmann6"),
        *("glmnet", "rpart", "xgboost", "lcbench"),
    ]
    assert families[4] == {
        "name": "glmnet",
        "dimensions": 2,
        "num_tasks": 15,
        "run_length": 10,
        "tasks": {"training": 15, "validation": 3, "test": 12},
        "provenance": "shipped table",
    }
    assert families[0]["tasks"] == {"training": None, "validation": None, "test": None}


def test_env_fetch_writes_the_tables_and_says_how_to_use_them(served, tmp_path):
    for _ in range(2):  # the second time, nothing is left to do
        done = invoke("env", "fetch", "--to", tmp_path / "bot", "--url", served.url)
        assert done.exit_code == 0, done.stderr
        assert f'Table("glmnet", source="{tmp_path / "bot"}")' in done.stdout
        assert "[3/3]" in done.stderr and "(1.4 MB)" in done.stderr
    assert {p.name: p.read_bytes() for p in (tmp_path / "bot").iterdir()} == FILES
    assert len(served.asked) == 2 + 3


def test_env_fetch_fails_with_one_sentence_and_nothing_half_written(served, tmp_path):
    served.listed[1]["computed_md5"] = "0" * 32
    served.publish()
    done = invoke("env", "fetch", "--to", tmp_path, "--url", served.url)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr
    assert "Error: OpenMLRandomBotResultsFinal_mlr.classif.rpart.csv arrived damaged" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [list(FILES)[0]]
    served.pages.clear()
    done = invoke("env", "fetch", "--to", tmp_path, "--url", served.url)
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: ") and "answered 404" in done.stderr


def test_env_help_names_both_commands():
    found = invoke("env", "--help").stdout
    assert "list" in found and "fetch" in found
