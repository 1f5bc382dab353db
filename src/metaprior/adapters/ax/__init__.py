"""Ax: a generation strategy that starts from learned priors, and past experiments as tasks."""

# ruff: noqa: E402 (nothing below can be imported without Ax)

from metaprior.adapters import require_host

require_host("ax", called="Ax", extra="ax", oldest=1)

from metaprior.adapters import StudyUse as StudyUse
from metaprior.adapters.ax._columns import AxColumns as AxColumns
from metaprior.adapters.ax._history import load_outputs as load_outputs
from metaprior.adapters.ax._history import load_tasks as load_tasks
from metaprior.adapters.ax._history import read_history as read_history
from metaprior.adapters.ax._history import read_outputs as read_outputs
from metaprior.adapters.ax._node import LearnedPriorNode as LearnedPriorNode
from metaprior.adapters.ax._registered import register
from metaprior.adapters.ax._strategy import generation_strategy as generation_strategy
from metaprior.adapters.histories import History as History
from metaprior.adapters.histories import OutputsHistory as OutputsHistory

register()
