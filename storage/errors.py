"""Errors of a store."""

from ..errors import ActivememError


class StoreError(ActivememError):
    """Error of a store that cannot do what is requested.

    The message says what was expected and what was found.
    """


class DamagedError(StoreError):
    """Error for a file whose bytes have changed. Readers quarantine the file."""


class ForeignError(StoreError):
    """Error for an intact file that no store wrote. Readers skip the file and do not move it."""


class UnreadableError(StoreError):
    """Error for a path that cannot be read as a file, such as a folder. Readers skip the path."""
