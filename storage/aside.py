"""Setting a damaged file aside: moved out of the data, named in a warning and in a note, never deleted."""

import logging
import os
from datetime import UTC, datetime
from pathlib import Path

from .layout import Layout

_log = logging.getLogger(__name__)


class Aside:
    """The damaged files that one session has met; `paths` says where they lie now."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.paths: list[Path] = []

    def move(self, path: Path, reason: str) -> None:
        """Set one file aside; in a store that cannot be written it stays, and is left out all the same.

        Raises `FileNotFoundError` if another process was faster.
        """
        name = path.relative_to(self._layout.root)
        target = _free(self._layout.aside / name)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
            with (self._layout.aside / "notes.txt").open("a", encoding="utf-8") as notes:
                notes.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%SZ}  {name}: {reason}\n")
        except FileNotFoundError:
            raise
        except OSError as error:
            target = path
            reason = f"{reason}; it could not be moved ({os.strerror(error.errno or 0)})"
        if target not in self.paths:
            self.paths.append(target)
        _log.warning("%s is set aside: %s; what it held counts as missing", name, reason)


def _free(path: Path) -> Path:
    """Return a path that no file has, by counting up from this one."""
    target, count = path, 1
    while target.exists():
        count += 1
        target = path.with_name(f"{path.name}.{count}")
    return target
