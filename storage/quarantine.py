"""Quarantine: a damaged file is moved out of the data, named in a warning and in a note, never deleted.

Its rows then count as missing, so that the trials run again.
"""

import contextlib
import logging
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from .paths import Layout

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A file that is not read, where it was, and why; a damaged one is moved, any other is left."""

    path: Path
    reason: str
    is_damaged: bool


class Quarantine:
    """The files that one session has not read: `paths` says where they are now, `faults` why.

    A `dry` one moves nothing and warns of nothing.
    """

    def __init__(self, layout: Layout, *, dry: bool = False) -> None:
        self.layout, self.dry = layout, dry
        self.paths: list[Path] = []
        self.faults: list[UnreadFile] = []

    def move(self, path: Path, reason: str, left: str = "its contents count as missing") -> None:
        """Quarantine one file, and say what is left of it.

        In a store that cannot be written it stays, and is left out all the same.
        """
        name = path.relative_to(self.layout.root)
        self.faults.append(UnreadFile(path, f"{reason}; {left}", is_damaged=True))
        if self.dry:
            return
        target = self.layout.quarantine / name
        try:
            target = self.layout.place.move(path, target)
            self._note(f"{name}: {reason}")
        except FileNotFoundError:  # another process was faster
            pass
        except OSError as error:
            target = path
            reason = f"{reason}; it could not be moved ({os.strerror(error.errno or 0)})"
        if target not in self.paths:
            self.paths.append(target)
        _log.warning("%s is quarantined: %s; %s", name, reason, left)

    def leave(self, path: Path, reason: str) -> None:
        """Leave out what is no file of the store, or cannot be read; the first time, with a warning."""
        if path in self.paths:
            return
        self.paths.append(path)
        self.faults.append(UnreadFile(path, reason, is_damaged=False))
        if not self.dry:
            _log.warning("%s is left out: %s", path.relative_to(self.layout.root), reason)

    def _note(self, line: str) -> None:
        """Add a line to the note beside the files; the file is safe without it."""
        notes = self.layout.quarantine / "notes.txt"
        with contextlib.suppress(OSError):
            self.layout.place.fetch_file(notes)
            with notes.open("a", encoding="utf-8") as page:
                page.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%SZ}  {line}\n")
            self.layout.place.put(notes)
