"""Errors of a store."""

from ..errors import ActivememError


class StoreError(ActivememError):
    """A store cannot do what was asked; the message says what was expected and what came."""


class DamagedError(StoreError):
    """A file whose bytes are not those that were written; readers quarantine it."""


class ForeignError(StoreError):
    """An intact file that no store wrote; readers skip it and leave it where it is."""


class UnreadableError(StoreError):
    """Something that has a file's name but is no file, or cannot be read; readers skip it and leave it."""
