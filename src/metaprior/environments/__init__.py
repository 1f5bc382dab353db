"""Families of related tasks whose optima are known: what the studies and the examples run on."""

from metaprior.environments._branin import Branin as Branin
from metaprior.environments._branin import BraninTask as BraninTask
from metaprior.environments._camelback import Camelback as Camelback
from metaprior.environments._camelback import CamelbackTask as CamelbackTask
from metaprior.environments._family import AbstractTask as AbstractTask
from metaprior.environments._family import Family as Family
from metaprior.environments._hartmann import Hartmann6 as Hartmann6
from metaprior.environments._hartmann import HartmannTask as HartmannTask
from metaprior.environments._mixture import Mixture1d as Mixture1d
from metaprior.environments._mixture import MixtureTask as MixtureTask
from metaprior.environments._optimum import Optima as Optima
