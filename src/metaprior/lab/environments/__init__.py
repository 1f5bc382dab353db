"""Families of related tasks whose optima are known: what the studies and the examples run on."""

from metaprior.lab.environments._branin import Branin as Branin
from metaprior.lab.environments._branin import BraninTask as BraninTask
from metaprior.lab.environments._camelback import Camelback as Camelback
from metaprior.lab.environments._camelback import CamelbackTask as CamelbackTask
from metaprior.lab.environments._family import AbstractTask as AbstractTask
from metaprior.lab.environments._family import Available as Available
from metaprior.lab.environments._family import Family as Family
from metaprior.lab.environments._fetch import FIGSHARE as FIGSHARE
from metaprior.lab.environments._fetch import RemoteTable as RemoteTable
from metaprior.lab.environments._fetch import download as download
from metaprior.lab.environments._fetch import remote_tables as remote_tables
from metaprior.lab.environments._hartmann import Hartmann6 as Hartmann6
from metaprior.lab.environments._hartmann import HartmannTask as HartmannTask
from metaprior.lab.environments._known import known_families as known_families
from metaprior.lab.environments._lcbench import LCBENCH as LCBENCH
from metaprior.lab.environments._learners import LEARNERS as LEARNERS
from metaprior.lab.environments._learners import TEST_IDS as TEST_IDS
from metaprior.lab.environments._learners import TRAINING_IDS as TRAINING_IDS
from metaprior.lab.environments._learners import VALIDATION_IDS as VALIDATION_IDS
from metaprior.lab.environments._mixture import Mixture1d as Mixture1d
from metaprior.lab.environments._mixture import MixtureTask as MixtureTask
from metaprior.lab.environments._model_selection import MODEL_SELECTION as MODEL_SELECTION
from metaprior.lab.environments._model_selection import ModelSelectionTask as ModelSelectionTask
from metaprior.lab.environments._model_selection import (
    model_selection_tasks as model_selection_tasks,
)
from metaprior.lab.environments._model_selection import (
    model_selection_tuning_tasks as model_selection_tuning_tasks,
)
from metaprior.lab.environments._optimum import Optima as Optima
from metaprior.lab.environments._simulated import AbstractFormula as AbstractFormula
from metaprior.lab.environments._simulated import SimulatedFamily as SimulatedFamily
from metaprior.lab.environments._table import Table as Table
from metaprior.lab.environments._table import TableTask as TableTask
