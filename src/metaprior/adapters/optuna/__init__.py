"""Optuna in, Optuna out: tasks from a storage, and a sampler that starts from a learned prior."""

# ruff: noqa: E402 (nothing below can be imported without Optuna)

from metaprior.adapters import require_host

require_host("optuna", called="Optuna", extra="optuna", oldest=5)

from metaprior.adapters import StudyUse as StudyUse
from metaprior.adapters.histories import History as History
from metaprior.adapters.histories import OutputsHistory as OutputsHistory
from metaprior.adapters.optuna._history import load_outputs as load_outputs
from metaprior.adapters.optuna._history import load_tasks as load_tasks
from metaprior.adapters.optuna._history import read_history as read_history
from metaprior.adapters.optuna._history import read_outputs as read_outputs
from metaprior.adapters.optuna._lifelong import LifelongSampler as LifelongSampler
from metaprior.adapters.optuna._lifelong import SequenceStatus as SequenceStatus
from metaprior.adapters.optuna._lifelong import restore as restore
from metaprior.adapters.optuna._lifelong import versions_in as versions_in
from metaprior.adapters.optuna._sampler import MetaPriorSampler as MetaPriorSampler
from metaprior.adapters.optuna._stop import StopWhenDone as StopWhenDone
