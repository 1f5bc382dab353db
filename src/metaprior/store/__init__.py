"""Saving and loading: no pickle, and a clear sentence for every damaged file."""

from metaprior.store._card import limits as limits
from metaprior.store._card import settings_in_words as settings_in_words
from metaprior.store._files import CARD as CARD
from metaprior.store._files import DESCRIPTION as DESCRIPTION
from metaprior.store._files import REPORT as REPORT
from metaprior.store._files import PriorFileError as PriorFileError
from metaprior.store._files import checksum_of as checksum_of
from metaprior.store._files import is_prior_file as is_prior_file
from metaprior.store._files import read_files as read_files
from metaprior.store._files import require_place as require_place
from metaprior.store._files import require_writeable as require_writeable
from metaprior.store._format import load as load
from metaprior.store._format import save_prior as save_prior
from metaprior.store._priors import INDEX as INDEX
from metaprior.store._priors import is_folder_of_priors as is_folder_of_priors
from metaprior.store._priors import load_priors as load_priors
from metaprior.store._priors import save_priors as save_priors
