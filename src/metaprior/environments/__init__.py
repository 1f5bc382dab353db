"""Families of related tasks whose optima are known: what the studies and the examples run on."""

from metaprior.environments._branin import Branin as Branin
from metaprior.environments._branin import BraninTask as BraninTask
from metaprior.environments._camelback import Camelback as Camelback
from metaprior.environments._camelback import CamelbackTask as CamelbackTask
from metaprior.environments._family import Available as Available
from metaprior.environments._family import Family as Family
from metaprior.environments._fetch import FIGSHARE as FIGSHARE
from metaprior.environments._fetch import RemoteTable as RemoteTable
from metaprior.environments._fetch import download as download
from metaprior.environments._fetch import remote_tables as remote_tables
from metaprior.environments._hartmann import Hartmann6 as Hartmann6
from metaprior.environments._hartmann import HartmannTask as HartmannTask
from metaprior.environments._mixture import Mixture1d as Mixture1d
from metaprior.environments._mixture import MixtureTask as MixtureTask
from metaprior.environments._optimum import Optima as Optima
from metaprior.environments._simulated import SimulatedFamily as SimulatedFamily
from metaprior.environments._table import Table as Table
from metaprior.environments._table import TableTask as TableTask
from metaprior.environments._task import AbstractTask as AbstractTask
