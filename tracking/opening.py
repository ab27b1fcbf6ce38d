"""Lookup of trackers by name; only the named library is imported, and errors explain its installation."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from ..diagnostics import nearest_hint
from .contract import Tracker, TrackingError

TRACKER_NAMES = ("tensorboard", "mlflow", "wandb", "trackio")
"""The supported programs; each name is also that of an extra, a library and a file in `libraries`."""

SEARCH_EXPORT = "optuna"
"""The program for the export of stored searches; it cannot track running studies."""

EXPORT_NAMES = (*TRACKER_NAMES, SEARCH_EXPORT)
"""The programs for the export of a stored study."""


def is_uri(place: str) -> bool:
    """Return whether a place is an address, such as a server's, rather than a folder."""
    return "://" in place


def open_trackers(places: Mapping[str, str]) -> dict[str, Tracker]:
    """Return the trackers of these places by name; TrackingError with all faults."""
    faults = [fault for name in places if (fault := library_fault(name))]
    opened: dict[str, Tracker] = {}
    for name, place in places.items() if not faults else ():
        try:
            opened[name] = import_module(f".libraries.{name}", __package__).open_tracker(place)
        except TrackingError as error:
            faults.append(f"{name}: {error}")
    if faults:
        for tracker in opened.values():
            tracker.close()
        raise TrackingError("\n".join(faults))
    return opened


def library_fault(name: str) -> str | None:
    """Return why the library of a program cannot be used here, None if it can."""
    if name not in TRACKER_NAMES:
        return f"there is no tracker '{name}'{nearest_hint(name, EXPORT_NAMES)}"
    if (found := find_spec(name)) is None or found.origin is None:  # a folder `wandb` here is not the library
        return f"{name}: its library is not installed; install it: pip install 'activemem[{name}]'"
    return None
