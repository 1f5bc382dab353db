"""`read_history`: from exported runs of Weights & Biases to tasks, with a line on every study."""

from typing import Unpack

from metaprior.adapters.histories import (
    History,
    LoggedOptions,
    Sources,
    history_of_logged,
    paths_of,
    titles_of,
)
from metaprior.adapters.wandb._export import is_export, read_export
from metaprior.data import Tasks


def load_tasks(files: Sources, **options: Unpack[LoggedOptions]) -> Tasks:
    """Exported runs of W&B as tasks; the arguments are those of `read_history`."""
    return read_history(files, **options).tasks


def read_history(files: Sources, **options: Unpack[LoggedOptions]) -> History:
    """Exported runs of W&B as tasks, and what was used, skipped and decided.

    A run is one evaluation, if it has finished; the value is its summary of the metric. One file
    is one study, unless `task` names a column or a key of the configuration that says which runs
    belong together, such as `"group"` or `"dataset"`. Nested keys have names such as
    `optimizer.lr`.

    - `files`: CSV, JSON or JSON-lines files, patterns, or a folder of such.
    - `options`: see `LoggedOptions`; `metric` and `direction` are needed. Columns beside
      configuration and summary are labels. A table exported from the web page does not say which
      columns are results: name those in `ignore`, or the parameters in a `space`.
    """
    paths = paths_of(files, is_one=is_export, inside="*", called="an export of W&B runs")
    exports = {title: read_export(path) for title, path in titles_of(paths).items()}
    where = str(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    found = {title: export.runs for title, export in exports.items()}
    history = history_of_logged(found, where, **options)
    if options.get("space") is None and any(export.flat_table for export in exports.values()):
        note = (
            "The table does not say which columns are results: every column but W&B's own is taken "
            "as a parameter, unless it is left out."
        )
        history = history._replace(notes=[note, *history.notes])
    return history
