"""Saving and loading: no pickle, and a clear sentence for every damaged file."""

from metaprior.store._card import limits as limits
from metaprior.store._card import settings_in_words as settings_in_words
from metaprior.store._format import ARRAYS as ARRAYS
from metaprior.store._format import CARD as CARD
from metaprior.store._format import DESCRIPTION as DESCRIPTION
from metaprior.store._format import REPORT as REPORT
from metaprior.store._format import PriorFileError as PriorFileError
from metaprior.store._format import load as load
from metaprior.store._format import save_prior as save_prior
from metaprior.store._priors import INDEX as INDEX
from metaprior.store._priors import is_folder_of_priors as is_folder_of_priors
from metaprior.store._priors import load_priors as load_priors
from metaprior.store._priors import save_priors as save_priors
