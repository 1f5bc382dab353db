"""Where the shipped table of LCBench is: found without importing the lab, and so without JAX."""

from importlib import resources
from pathlib import Path

LCBENCH = Path(str(resources.files("metaprior"))) / "lab/environments/tables/lcbench.npz"
