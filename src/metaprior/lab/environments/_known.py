"""The families of the studies, under the names that records and commands have for them."""

from metaprior.lab.environments._branin import Branin
from metaprior.lab.environments._camelback import Camelback
from metaprior.lab.environments._family import Family
from metaprior.lab.environments._hartmann import Hartmann6
from metaprior.lab.environments._mixture import Mixture1d
from metaprior.lab.environments._table import TABLES, Table


def known_families() -> dict[str, Family]:
    """Every family by name, in the order of the paper's table of benchmark environments; LCBench is
    not in it, and last."""
    tables = [Table(name) for name in TABLES]
    families: list[Family] = [Mixture1d(), Branin(), Camelback(), Hartmann6(), *tables]
    return {family.name: family for family in families}
