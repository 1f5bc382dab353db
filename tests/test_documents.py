"""The code blocks of README and guides run as they stand; pages are wrapped, and their pictures and
links exist."""

import json
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

import metaprior as mp

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = sorted(
    [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "VISION.md")]
    + list((ROOT / "docs").rglob("*.md"))
)
COLUMNS = 100


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("README.md", marks=pytest.mark.slow),
        pytest.param("docs/first-prior.md", marks=pytest.mark.slow),
        pytest.param("docs/how-to/own-method.md", marks=pytest.mark.slow),
    ],
)
def test_documents_code_blocks_run(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / name).read_text())
    assert blocks, f"{name} has no python block"
    exec(compile("\n".join(blocks), name, "exec"), {"__name__": "__document__"})
    assert "Best(x=" in capsys.readouterr().out


@pytest.mark.slow
def test_documents_own_hyper_prior_trains():
    """The ten lines of the framework page, and a short training with them."""
    [block] = BLOCK.findall((ROOT / "docs/concepts/framework.md").read_text())
    names: dict[str, Any] = {"__name__": "__document__"}
    exec(compile(block, "docs/concepts/framework.md", "exec"), names)
    runs = [([[0.1 * i], [0.5], [0.9]], [0.0, 1.0, 0.1 * i]) for i in range(3)]
    tasks = mp.Tasks.from_runs(runs, space=mp.Space(x=mp.Real(0, 1)))
    prior = mp.learn(tasks, method=replace(names["method"], num_steps=3))
    assert np.isfinite(prior.history["fit"]).all() and len(prior.history["fit"]) == 3


@pytest.mark.parametrize(
    ("name", "shows"),
    [
        pytest.param(
            "docs/how-to/botorch.md",
            "[{'x': ",
            marks=[
                pytest.mark.oracle,
                # Its module can only be named where BoTorch is installed.
                pytest.mark.filterwarnings(
                    "ignore::linear_operator.utils.warnings.NumericalWarning"
                ),
            ],
        ),
        pytest.param("docs/how-to/scikit-learn.md", "[", marks=()),
    ],
)
def test_documents_code_blocks_run_with_a_saved_prior(
    name, shows, hill_prior, hill_runs, tmp_path, monkeypatch, capsys
):
    """Pages that begin with a prior in `prior/` and a run: `points, values`, or `X, y`."""
    hill_prior.save(tmp_path / "prior")
    monkeypatch.chdir(tmp_path)
    points, values = hill_runs[-1]
    names = {"X": points, "y": values, "points": points.tolist(), "values": values.tolist()}
    blocks = BLOCK.findall((ROOT / name).read_text())
    exec(compile("\n".join(blocks), name, "exec"), {"__name__": "__document__", **names})
    assert shows in capsys.readouterr().out


@pytest.mark.oracle
def test_documents_code_blocks_read_histories(tmp_path, monkeypatch):
    """The page on other hosts, on what these wrote; learning is shortened."""
    torch = pytest.importorskip("torch", reason="`make oracle` installs torch")
    monkeypatch.chdir(tmp_path)
    _write_mlflow("sqlite:///mlflow.db")
    _write_ray(tmp_path / "ray_results")
    _write_optuna("sqlite:///past.db")
    space = mp.Space(x=mp.Real(0.0, 1.0))
    X, Y = torch.tensor([[0.1], [0.9]]).double(), torch.tensor([[1.0], [2.0]]).double()
    names = {"space": space, "X_1": X, "Y_1": Y, "X_2": X, "Y_2": Y}
    blocks = BLOCK.findall((ROOT / "docs/how-to/other-histories.md").read_text())
    source = "\n".join(blocks).replace('budget="fast"', "method=metaprior.methods.FixedGP()")
    assert source.count("FixedGP") == 2
    exec(compile(source, "other-histories.md", "exec"), {"__name__": "__document__", **names})


def _write_mlflow(uri: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=uri)
    for name in ("iris", "wine"):
        experiment = client.create_experiment(name)
        for i in range(3):
            run = client.create_run(experiment).info.run_id
            client.log_param(run, "x", 0.1 * i)
            client.log_metric(run, "val_loss", float(i))
            client.set_terminated(run)


def _write_ray(folder: Path) -> None:
    for name in ("iris", "wine"):
        for i in range(3):
            trial = folder / name / f"train_{i:05}"
            trial.mkdir(parents=True)
            (trial / "params.json").write_text(json.dumps({"x": 0.1 * i}))
            (trial / "result.json").write_text(json.dumps({"loss": i, "training_iteration": 1}))


def _write_optuna(url: str) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for name in ("iris", "wine"):
        study = optuna.create_study(
            study_name=name, storage=url, directions=["maximize", "minimize"]
        )
        for i in range(3):
            trial = study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
            trial.set_constraint("memory", i - 1.0)
            study.tell(trial, [1.0 * i, 2.0 * i])


HOSTS_AT_WORK = [
    pytest.mark.oracle,
    # Their own, and PyTorch's at work for them.
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ax\..*"),
    pytest.mark.filterwarnings("ignore:To copy construct from a tensor:UserWarning"),
    pytest.mark.filterwarnings("ignore:Optimization failed in:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Unknown solver options"),
    pytest.mark.filterwarnings("ignore:A not p.d."),
]


@pytest.mark.parametrize(
    ("name", "shows"),
    [
        pytest.param(
            "ax", ["best of 6", "after loading: 1", "constrained: [{"], marks=HOSTS_AT_WORK
        ),
        pytest.param(
            "botorch", ["next: [{", "best of 6", "expected", "objectives: [{"], marks=HOSTS_AT_WORK
        ),
        pytest.param("two-objectives", ["minimize seconds", "the front"], marks=pytest.mark.slow),
    ],
)
def test_tutorial_runs_at_small_size(name, shows, tmp_path, monkeypatch, capsys):
    """As it stands, but for the size of the learning."""
    monkeypatch.chdir(tmp_path)
    page = ROOT / f"docs/tutorials/{name}.md"
    code = "\n".join(BLOCK.findall(page.read_text()))
    assert 'budget="fast"' in code
    small = code.replace('budget="fast"', "method=mp.methods.FPacohMap(num_steps=30)")
    exec(compile(small, str(page), "exec"), {"__name__": "__document__"})
    printed = capsys.readouterr().out
    assert all(words in printed for words in shows), printed


def too_long(text: str) -> list[str]:
    """Lines of prose over the limit that could be broken; tables, code and links cannot."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [
        line
        for line in prose.splitlines()
        if len(line) > COLUMNS
        and not line.lstrip().startswith("|")
        and not re.fullmatch(r"\s*[-*(]?\s*!?\[[^]]*\]\([^)]*\)\S*", line)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_is_wrapped_at_100_columns(page):
    assert too_long(page.read_text()) == []


def test_too_long_finds_prose_and_spares_tables_code_and_links():
    words, link = "word " * 30, f"[name](https://example.org/{'a' * 120})"
    assert too_long(f"{words}\n") == [words]
    assert (
        too_long(f"| {words} |\n") == too_long(f"```text\n{words}\n```\n") == too_long(link) == []
    )
    assert too_long(f"{words} {link}") != []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_links_to_files_that_exist(page):
    """Pictures and pages; anchors and the pages made by `mkdocs build` are checked by that."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).is_file(), target


def packages_named(text: str) -> set[str]:
    """Names in code at the start of a table's rows."""
    return set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))


def test_architecture_names_every_package():
    page = (ROOT / "docs/architecture.md").read_text()
    table = page.split("## The packages")[1].split("## ")[0]
    packages = {path.parent.name for path in (ROOT / "src/metaprior").glob("*/__init__.py")}
    assert packages_named(table) == packages
    assert packages_named("| `gp` | kernels |\n| method | `no_package` |\n") == {"gp"}


def test_architecture_names_files_that_exist_for_every_addition():
    page = (ROOT / "docs/architecture.md").read_text()
    table = page.split("## Where do I add something?")[1]
    for addition in ("kernel", "acquisition", "method", "adapter", "report metric"):
        assert re.search(rf"^\| an? {addition} \|", table, re.MULTILINE), addition
    files = re.findall(r"`((?:\w+/)+\w+\.py)`", table)
    assert len(files) > 8
    for name in files:
        assert (ROOT / "src/metaprior" / name).is_file() or (ROOT / name).is_file(), name
