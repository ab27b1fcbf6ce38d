"""How numbers read: as everywhere, within the columns of the command line."""

from __future__ import annotations

from ..studies.quantities import crop, duration, in_bytes, plural, prefix, reach, reach_data, squeezed

__all__ = ["WIDTH", "crop", "duration", "in_bytes", "plural", "prefix", "reach", "reach_data", "squeezed"]

WIDTH = 80
"""Columns that everything fits into, where names allow it."""
