"""Past runs from CSV files: reading them, and the space from a TOML file or from the data."""

from metaprior.tables._read import RunsRead as RunsRead
from metaprior.tables._read import read_runs as read_runs
from metaprior.tables._space_file import read_space as read_space
from metaprior.tables._space_file import space_as_toml as space_as_toml
from metaprior.tables._space_file import write_space as write_space
