"""The files of corpora on this machine: fetched, found, and held against their checksums."""

from .availability import Availability, available_datasets, check_availability
from .download import Progress, copy_from, fetch
from .files import DataError, dataset_folder, iter_lines, read_source
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
    "read_source",
    "read_treebank",
]
