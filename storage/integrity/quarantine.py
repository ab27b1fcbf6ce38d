"""Quarantine: a damaged file is moved out of the data, named in a warning and in a note, never deleted.

Its rows then count as missing, so that the trials run again.
"""

import contextlib
import logging
import os
from datetime import UTC, datetime
from pathlib import Path

from ..paths import Layout

_log = logging.getLogger(__name__)


class Quarantine:
    """The damaged files that one session has met; `paths` says where they are now."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.paths: list[Path] = []

    def move(self, path: Path, reason: str, left: str = "its contents count as missing") -> None:
        """Quarantine one file, and say what is left of it.

        In a store that cannot be written it stays, and is left out all the same.
        """
        name = path.relative_to(self.layout.root)
        target = _unused_path(self.layout.quarantine / name)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
            self._note(f"{name}: {reason}")
        except FileNotFoundError:  # another process was faster
            target = self.layout.quarantine / name
        except OSError as error:
            target = path
            reason = f"{reason}; it could not be moved ({os.strerror(error.errno or 0)})"
        if target not in self.paths:
            self.paths.append(target)
        _log.warning("%s is quarantined: %s; %s", name, reason, left)

    def leave(self, path: Path, reason: str) -> None:
        """Leave out what is no file of the store, or cannot be read; the first time, with a warning."""
        if path not in self.paths:
            self.paths.append(path)
            _log.warning("%s is left out: %s", path.relative_to(self.layout.root), reason)

    def _note(self, line: str) -> None:
        """Add a line to the note beside the files; the file is safe without it."""
        notes = self.layout.quarantine / "notes.txt"
        with contextlib.suppress(OSError), notes.open("a", encoding="utf-8") as page:
            page.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%SZ}  {line}\n")


def _unused_path(path: Path) -> Path:
    """Return a path that no file has, this one or one with a number."""
    target, count = path, 1
    while target.exists():
        count += 1
        target = path.with_name(f"{path.name}.{count}")
    return target
