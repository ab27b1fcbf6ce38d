"""Errors of a store."""

from ..errors import ActivememError


class StoreError(ActivememError):
    """Error of a store that cannot do what is requested; the message has the expected and actual state."""


class DamagedError(StoreError):
    """Error for a file whose bytes have changed; readers quarantine the file."""


class ForeignError(StoreError):
    """Error for an intact file that no store wrote; readers skip the file and do not move it."""


class UnreadableError(StoreError):
    """Error for a path with a data file's name that is no readable file; readers skip the path."""
