"""Names and places of trackers, without any library."""

from __future__ import annotations

TRACKER_NAMES = ("tensorboard", "mlflow", "wandb", "trackio")
"""The programs, each with an extra, a library and a file in `libraries` of its name."""

SEARCH_EXPORT = "optuna"
"""What a search is exported to, of which a run tells nothing."""

EXPORT_NAMES = (*TRACKER_NAMES, SEARCH_EXPORT)
"""All that a study in a store can be exported to."""


def is_uri(place: str) -> bool:
    """Return whether a place is an address, such as that of a server, and no folder."""
    return "://" in place
