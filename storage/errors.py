"""Errors of a store."""

from ..errors import ActivememError


class StoreError(ActivememError):
    """Raised if a store cannot do what is requested; the message has the expected and the actual state."""


class DamagedError(StoreError):
    """Raised for a file whose bytes have changed; readers quarantine the file."""


class ForeignError(StoreError):
    """Raised for an intact file that no store wrote; readers skip the file and do not move it."""


class UnreadableError(StoreError):
    """Raised for something with a data file's name that is no file or cannot be read; readers skip it."""
