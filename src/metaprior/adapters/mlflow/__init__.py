"""MLflow in: the runs of a tracking server, a database or a file store as tasks."""

# ruff: noqa: E402 (nothing below can be imported without MLflow)

from metaprior.adapters import require_host

require_host("mlflow", called="MLflow", extra="mlflow", oldest=2)

from metaprior.adapters import StudyUse as StudyUse
from metaprior.adapters.histories import History as History
from metaprior.adapters.histories import LoggedOptions as LoggedOptions
from metaprior.adapters.mlflow._history import load_tasks as load_tasks
from metaprior.adapters.mlflow._history import read_history as read_history
