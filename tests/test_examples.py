"""The examples run as they stand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.postgres_server import skip_without_server

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
# Those that train several priors.
LONG = ("compare_methods", "figure_1", "hyper_priors")
# Those that start a server of their own.
ON_POSTGRES = ("four_workers",)


def marks_of(path: Path) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.study if path.stem in LONG else pytest.mark.slow]
    return [*marks, pytest.mark.postgres] if path.stem in ON_POSTGRES else marks


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=marks_of(path)) for path in EXAMPLES]
)
def test_example_runs(path, tmp_path):
    if path.stem in ON_POSTGRES:
        skip_without_server()
    environment = {**os.environ, "METAPRIOR_SMALL": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
