"""Runs one after another: ask and tell with CSV files, and a prior that learns from every run."""

from metaprior.lifelong._asking import RunStatus as RunStatus
from metaprior.lifelong._asking import status as status
from metaprior.lifelong._asking import suggest as suggest
from metaprior.lifelong._asking import tell as tell
from metaprior.lifelong._judgement import Judgement as Judgement
from metaprior.lifelong._judgement import judge as judge
from metaprior.lifelong._ledger import Ledger as Ledger
from metaprior.lifelong._run_file import Row as Row
from metaprior.lifelong._run_file import RunFile as RunFile
from metaprior.lifelong._run_file import read_run as read_run
from metaprior.lifelong._sequence import PriorSequence as PriorSequence
from metaprior.lifelong._versions import Version as Version
from metaprior.lifelong._versions import plain_prior as plain_prior
