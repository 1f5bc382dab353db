"""Files that are there whole or not at all, and locks that end with the process holding them."""

from metaprior.files._lock import hold as hold
from metaprior.files._lock import locked as locked
from metaprior.files._replace import replace_file as replace_file
from metaprior.files._replace import replace_folder as replace_folder
from metaprior.files._replace import unwriteable as unwriteable
