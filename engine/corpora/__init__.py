"""Files of corpora: fetched, found, and compared with their checksums.

`download` fetches them, `availability` says which are on this machine, `files` reads them as they were
published, `treebank_files` those of treebanks. `own_files` keeps files of the user's own.
"""

from .availability import Availability, available_datasets, check_availability
from .download import Progress, copy_from, fetch
from .files import DataError, dataset_folder, iter_lines, read_source
from .own_files import keep_files
from .treebank_files import read_treebank

__all__ = [
    "Availability",
    "DataError",
    "Progress",
    "available_datasets",
    "check_availability",
    "copy_from",
    "dataset_folder",
    "fetch",
    "iter_lines",
    "keep_files",
    "read_source",
    "read_treebank",
]
