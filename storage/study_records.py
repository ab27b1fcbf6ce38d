"""Study records: what a study was when it last ran, one JSON file each, with a checksum of all its bytes."""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from .durable_write import write_durably
from .integrity.checksum import DamagedError
from .integrity.quarantine import Quarantine
from .integrity.regular_file import UnreadableError, read_regular
from .paths import Layout, StoreError, entries, study_name_fault

RECORD_VERSION: Final = 1

_BEFORE_CHECKSUM: Final = b'{\n  "checksum": "'
_CHECKSUM_BYTES: Final = 64  # SHA-256 in hexadecimal digits, of the file without them
_KEYS: Final = ("schema", "remembered", "record")


def save_record(layout: Layout, name: str, record: Mapping[str, Any]) -> None:
    """Write a study's record in place of the one before."""
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    page = {"checksum": "", "schema": RECORD_VERSION, "remembered": now, "record": dict(record)}
    data = (json.dumps(page, indent=2) + "\n").encode()
    before, after = data[: len(_BEFORE_CHECKSUM)], data[len(_BEFORE_CHECKSUM) :]
    write_durably(layout, layout.study(name), before + _digest(before + after) + after)


def load_record(layout: Layout, quarantine: Quarantine, name: str) -> dict[str, Any] | None:
    """Return a study's record, or nothing if there is none; raises `StoreError` for an unknown version."""
    path = layout.study(name)
    layout.pull_file(path)
    page = _page(path, quarantine)
    return None if page is None else page["record"]


def renamed(record: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """The record of a study with another name in its text, and a note of which it had."""
    text = re.sub(
        rf"""^(\s*name\s*=\s*)["']{re.escape(old)}["']""",
        rf'\g<1>"{new}"',
        record["text"],
        count=1,
        flags=re.M,
    )
    fits = tomllib.loads(text)["study"]["name"] == new
    overrides = [*record["overrides"], *([] if fits else [f'study.name="{new}"'])]
    return {**record, "text": text if fits else record["text"], "overrides": overrides, "renamed": old}


def latest_study(layout: Layout, quarantine: Quarantine) -> str | None:
    """Return the name of the study that was recorded last."""
    times: dict[str, str] = {}
    layout.pull(layout.studies)
    for path in entries(layout.studies, ".json"):
        if study_name_fault(path.stem) is None and (page := _page(path, quarantine)):
            times[path.stem] = page["remembered"]
    return max(times, key=lambda name: times[name], default=None)


def read_page(path: Path) -> dict[str, Any]:
    """Return a record with its version and time; records of earlier releases have no checksum.

    Raises `FileNotFoundError`, `UnreadableError`, `DamagedError`, and `StoreError` for an unknown version.
    """
    data = read_regular(path)
    start, end = len(_BEFORE_CHECKSUM), len(_BEFORE_CHECKSUM) + _CHECKSUM_BYTES
    try:
        page = json.loads(data)
    except (ValueError, RecursionError):
        page = None
    match page:
        case {"schema": int(version), "remembered": str(), "record": dict()}:
            sealed = data.startswith(_BEFORE_CHECKSUM)
            if sealed and data[start:end] != _digest(data[:start] + data[end:]):
                raise DamagedError("its bytes do not match its checksum")
            if not sealed and tuple(page) != _KEYS:
                raise DamagedError("its checksum is missing")
            if version != RECORD_VERSION:
                raise StoreError(f"{path}: expected schema {RECORD_VERSION}, got {version}")
            return page
        case _:
            raise DamagedError("it is not a study record")


def _page(path: Path, quarantine: Quarantine) -> dict[str, Any] | None:
    """Return a record as `read_page` does, and nothing where it cannot; a damaged file is quarantined."""
    try:
        return read_page(path)
    except FileNotFoundError:
        return None
    except DamagedError as error:
        quarantine.move(path, str(error))
    except UnreadableError as error:
        quarantine.leave(path, str(error))
    return None


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()
