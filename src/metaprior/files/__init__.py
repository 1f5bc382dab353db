"""Files that are there whole or not at all, and locks that end with the process holding them."""

from metaprior.files._cache_folder import cache_folder as cache_folder
from metaprior.files._cache_folder import is_writable as is_writable
from metaprior.files._lock import hold as hold
from metaprior.files._lock import locked as locked
from metaprior.files._read import as_path as as_path
from metaprior.files._read import digest_of_json as digest_of_json
from metaprior.files._read import parse_json as parse_json
from metaprior.files._read import read_file as read_file
from metaprior.files._read import require_seal as require_seal
from metaprior.files._read import sealed as sealed
from metaprior.files._replace import PARTIAL as PARTIAL
from metaprior.files._replace import remove_partial as remove_partial
from metaprior.files._replace import replace_file as replace_file
from metaprior.files._replace import sync_folder as sync_folder
from metaprior.files._replace import unwriteable as unwriteable
