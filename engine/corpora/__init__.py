"""The files of corpora on this machine: fetched, found, and held against their checksums."""

from .fetching import Progress, fetch, take
from .sources import DataError, find, home, read
from .standing import Standing, standing

__all__ = ["DataError", "Progress", "Standing", "fetch", "find", "home", "read", "standing", "take"]
