"""Lifelong learning: ask and tell with CSV files, and a prior that learns from every run."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from metaprior.data.csv import Row as Row
from metaprior.data.csv import RunFile as RunFile
from metaprior.data.csv import read_run as read_run
from metaprior.lifelong._asking import RunStatus as RunStatus
from metaprior.lifelong._asking import Suggestions as Suggestions
from metaprior.lifelong._asking import status as status
from metaprior.lifelong._asking import suggest as suggest
from metaprior.lifelong._asking import tell as tell
from metaprior.lifelong._judgement import Judgement as Judgement
from metaprior.lifelong._judgement import judge as judge
from metaprior.lifelong._ledger import LEDGER as LEDGER
from metaprior.lifelong._ledger import Ledger as Ledger
from metaprior.lifelong._past_runs import require_keepable as require_keepable
from metaprior.lifelong._sequence import PriorSequence as PriorSequence
from metaprior.lifelong._versions import FEWEST_RUNS as FEWEST_RUNS
from metaprior.lifelong._versions import Version as Version
from metaprior.lifelong._versions import untrained_prior as untrained_prior

if TYPE_CHECKING:
    from metaprior.lifelong._learning import learn_version as learn_version


def __getattr__(name: str) -> Any:
    if name == "learn_version":  # on first use: it imports JAX
        return import_module("metaprior.lifelong._learning").learn_version
    raise AttributeError(f"module 'metaprior.lifelong' has no attribute {name!r}")
