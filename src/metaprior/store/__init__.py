"""Saving and loading: no pickle, and a clear sentence for every damaged file."""

from metaprior.store._format import PriorFileError as PriorFileError
from metaprior.store._format import load as load
from metaprior.store._format import save_prior as save_prior
