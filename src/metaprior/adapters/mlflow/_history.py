"""`read_history`: from the runs of MLflow to tasks, with a line on every study, used or not."""

from pathlib import Path
from typing import Unpack

from mlflow import MlflowClient
from mlflow.entities import Experiment, Run

from metaprior.adapters.histories import (
    History,
    LoggedOptions,
    LoggedRun,
    chosen_names,
    history_of_logged,
)
from metaprior.adapters.mlflow._store import called, reading
from metaprior.data import Tasks

_PARENT = "mlflow.parentRunId"
_NAME = "mlflow.runName"
# What MLflow itself notes on a run, and nothing that says something of the task.
_OWN = ("mlflow.source", "mlflow.user", "mlflow.log-model", "mlflow.runColor", "mlflow.note")
_FAULTS = {"FAILED": "failed", "KILLED": "killed", "RUNNING": "running", "SCHEDULED": "waiting"}
# What MLflow gives per request at most.
_PAGE = 1000


def load_tasks(store: str | Path, **options: Unpack[LoggedOptions]) -> Tasks:
    """Past runs that MLflow tracked as tasks; the arguments are those of `read_history`."""
    return read_history(store, **options).tasks


def read_history(store: str | Path, **options: Unpack[LoggedOptions]) -> History:
    """Past runs that MLflow tracked as tasks, and what was used, skipped and decided.

    One experiment is one study, unless `task` names a tag or parameter that says which runs belong
    together; `task="mlflow.parentRunId"` makes the children of each parent run a study. A run is
    one evaluation, if it has finished; the value is the last one logged for the metric. Parent
    runs, deleted runs and deleted experiments are left out.

    - `store`: a tracking URI (`sqlite:///mlflow.db`, `http://host:5000`), or the folder of a file
      store.
    - `options`: see `LoggedOptions`; `metric` and `direction` are needed. Tags of runs and of
      experiments are labels.
    """
    with reading(store) as uri:
        client = MlflowClient(tracking_uri=uri)
        experiments = sorted(_experiments(client), key=lambda each: each.creation_time or 0)
        if options.get("task") is None:
            # Only those that are wanted are downloaded.
            names = [each.name for each in experiments]
            wanted, match = options.get("studies"), options.get("match")
            names = chosen_names(names, wanted, match, called(store))
            experiments = [each for each in experiments if each.name in names]
        found = {each.name: _runs(client, each) for each in experiments}
    if options.get("studies") is None and options.get("match") is None:
        # Every store has the experiment "Default", usually without runs.
        found = {name: runs for name, runs in found.items() if runs}
    if not any(found.values()):
        raise ValueError(f"There are no runs in {called(store)}; check that it is the right store.")
    return history_of_logged(found, called(store), **options)


def _experiments(client: MlflowClient) -> list[Experiment]:
    found, token = [], None
    while True:
        page = client.search_experiments(max_results=_PAGE, page_token=token)
        found += page
        token = page.token
        if not token:
            return found


def _runs(client: MlflowClient, experiment: Experiment) -> list[LoggedRun]:
    """The runs of an experiment in the order in which they started."""
    runs, token = [], None
    while True:
        page = client.search_runs(
            [experiment.experiment_id],
            max_results=_PAGE,
            order_by=["attributes.start_time ASC"],
            page_token=token,
        )
        runs += page
        token = page.token
        if not token:
            break
    parents = {run.data.tags.get(_PARENT) for run in runs}
    names = {run.info.run_id: run.data.tags.get(_NAME, run.info.run_id) for run in runs}
    return [_logged(run, experiment, parents, names) for run in runs]


def _logged(
    run: Run, experiment: Experiment, parents: set[str | None], names: dict[str, str]
) -> LoggedRun:
    tags = {**experiment.tags, **run.data.tags}
    labels = {name: text for name, text in tags.items() if not name.startswith(_OWN)}
    if _PARENT in labels:  # people know a run by its name
        labels[_PARENT] = names.get(labels[_PARENT], labels[_PARENT])
    fault = _FAULTS.get(run.info.status, "")
    if run.info.run_id in parents:
        fault = "parent of others"
    return LoggedRun(run.data.params, run.data.metrics, labels, fault)
