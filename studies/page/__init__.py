"""A report is one HTML page without network or script, the same text for the same store."""

from .document import report

__all__ = ["report"]
