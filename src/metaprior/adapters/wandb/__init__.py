"""Weights & Biases in: exported runs as tasks. The wandb package itself is not needed."""

from metaprior.adapters import StudyUse as StudyUse
from metaprior.adapters.histories import History as History
from metaprior.adapters.histories import LoggedOptions as LoggedOptions
from metaprior.adapters.wandb._history import load_tasks as load_tasks
from metaprior.adapters.wandb._history import read_history as read_history
