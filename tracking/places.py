"""The programs that can be told of trials, and where: names and texts alone, without any library."""

from __future__ import annotations

TRACKER_NAMES = ("tensorboard", "mlflow")
"""The programs, each with an extra, a library and a file in `libraries` of its name."""


def is_uri(place: str) -> bool:
    """Whether a place is an address, such as that of a server, and no folder."""
    return "://" in place
