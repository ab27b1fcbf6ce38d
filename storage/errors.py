"""Errors of a store."""

from ..errors import ActivememError


class StoreError(ActivememError):
    """A store cannot do the requested operation; the message has the expected and actual state."""


class DamagedError(StoreError):
    """A file with changed bytes; readers quarantine it."""


class ForeignError(StoreError):
    """An intact file that no store wrote; readers skip it and do not move it."""


class UnreadableError(StoreError):
    """Something with a data file's name that is not a file or cannot be read; readers skip it."""
