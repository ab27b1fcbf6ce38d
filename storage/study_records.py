"""Study records: what a study was when it last ran, one JSON file each."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .durable_write import write_durably
from .integrity.quarantine import Quarantine
from .paths import Layout, StoreError, entries
from .schema import SCHEMA_VERSION


def save_record(layout: Layout, name: str, record: Mapping[str, Any]) -> None:
    """Write a study's record in place of the one before."""
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    page = {"schema": SCHEMA_VERSION, "remembered": now, "record": dict(record)}
    write_durably(layout, layout.study(name), (json.dumps(page, indent=2) + "\n").encode())


def load_record(layout: Layout, quarantine: Quarantine, name: str) -> dict[str, Any] | None:
    """Return a study's record, or nothing if there is none; raises `StoreError` for an unknown version."""
    page = _page(layout.study(name), quarantine)
    return None if page is None else page["record"]


def latest_study(layout: Layout, quarantine: Quarantine) -> str | None:
    """Return the name of the study that was recorded last."""
    times: dict[str, str] = {}
    for path in entries(layout.studies, ".json"):
        if page := _page(path, quarantine):
            times[path.stem] = page["remembered"]
    return max(times, key=lambda name: times[name], default=None)


def _page(path: Path, quarantine: Quarantine) -> dict[str, Any] | None:
    """Return a record with its version and time; a damaged file is quarantined."""
    try:
        page = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        page = None
    match page:
        case {"schema": int(version), "remembered": str(), "record": dict()}:
            if version != SCHEMA_VERSION:
                raise StoreError(f"{path}: expected schema {SCHEMA_VERSION}, got {version}")
            return page
        case _:
            quarantine.move(path, "it is not a study record")
            return None
