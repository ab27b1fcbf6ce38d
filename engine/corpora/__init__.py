"""The files of corpora on this machine: fetched, found, and held against their checksums."""

from .fetching import Progress, fetch, take
from .sources import DataError, home, lines, read
from .standing import Standing, present, standing
from .trees import read_treebank

__all__ = [
    "DataError",
    "Progress",
    "Standing",
    "fetch",
    "home",
    "lines",
    "present",
    "read",
    "read_treebank",
    "standing",
    "take",
]
