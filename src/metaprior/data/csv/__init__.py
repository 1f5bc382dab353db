"""Past runs from CSV files: reading them, and the space from a TOML file or from the data."""

from metaprior.data.csv._cells import number as number
from metaprior.data.csv._features import feature_value as feature_value
from metaprior.data.csv._infer import infer_dimension as infer_dimension
from metaprior.data.csv._read import RunsRead as RunsRead
from metaprior.data.csv._read import read_runs as read_runs
from metaprior.data.csv._run_file import Point as Point
from metaprior.data.csv._run_file import Row as Row
from metaprior.data.csv._run_file import RunFile as RunFile
from metaprior.data.csv._run_file import read_run as read_run
from metaprior.data.csv._space_file import read_space as read_space
from metaprior.data.csv._space_file import space_as_toml as space_as_toml
from metaprior.data.csv._space_file import write_space as write_space
