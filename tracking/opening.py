"""Openers of trackers by name. Only the named program is imported; errors say how to install it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from ..diagnostics import nearest_hint
from .contract import Tracker, TrackingError

TRACKER_NAMES = ("tensorboard", "mlflow", "wandb", "trackio")
"""The programs, each with an extra, a library and a file in `libraries` of its name."""

SEARCH_EXPORT = "optuna"
"""The program to which only searches in a store are exported, not running studies."""

EXPORT_NAMES = (*TRACKER_NAMES, SEARCH_EXPORT)
"""The programs to which a study in a store can be exported."""


def is_uri(place: str) -> bool:
    """Return whether a place is an address, such as a server's, and not a folder."""
    return "://" in place


def open_trackers(places: Mapping[str, str]) -> dict[str, Tracker]:
    """Return the trackers of these places, by name; raise TrackingError with every fault first."""
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
    """Return why a program of this name cannot be used here, if so."""
    if name not in TRACKER_NAMES:
        return f"there is no tracker '{name}'{nearest_hint(name, EXPORT_NAMES)}"
    if (found := find_spec(name)) is None or found.origin is None:  # a folder `wandb` here is not the library
        return f"{name}: its library is not installed; install it: pip install 'activemem[{name}]'"
    return None
