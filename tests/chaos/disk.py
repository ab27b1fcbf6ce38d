"""A small disk for stores, in memory in our own mount namespace, which can become full or read-only."""

import ctypes
import os
import time
from contextlib import suppress
from pathlib import Path

SIZE_MIB = 96
PATIENCE_S = 2.0

_NEW_MOUNTS = 0x00020000
_READ_ONLY, _REMOUNT, _RECURSIVE, _PRIVATE = 1, 32, 16384, 1 << 18
_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


class Disk:
    """A folder for stores; `is_own` says whether the folder is a mounted disk, which needs privileges."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"
        folder.mkdir(parents=True, exist_ok=True)
        try:
            _call("unshare", _NEW_MOUNTS)
            _mount(None, "/", None, _RECURSIVE | _PRIVATE)
            _mount("tmpfs", folder, "tmpfs", 0, f"size={SIZE_MIB}m")
        except OSError:
            self.is_own = False
        else:
            self.is_own = True

    def remove(self) -> None:
        """Undo the mount."""
        if self.is_own:
            _call("umount2", str(self.folder).encode(), _DETACH)

    def fill(self, left_bytes: int) -> None:
        """Fill the disk except for this much space."""
        descriptor = os.open(self._ballast, os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            state = os.fstatvfs(descriptor)
            with suppress(OSError):
                os.posix_fallocate(descriptor, 0, max(1, state.f_bavail * state.f_frsize - left_bytes))
        finally:
            os.close(descriptor)

    def make_room(self) -> None:
        """Undo `fill`."""
        self._ballast.unlink(missing_ok=True)

    def lock(self) -> bool:
        """Make the disk read-only, possible only without open writes; return whether that succeeded."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            with suppress(OSError):
                _mount(None, self.folder, None, _REMOUNT | _READ_ONLY)
                return True
            time.sleep(0.001)
        return False

    def unlock(self) -> None:
        """Undo `lock`."""
        _mount(None, self.folder, None, _REMOUNT)


def _mount(source: str | None, target: Path | str, kind: str | None, flags: int, data: str = "") -> None:
    words = [None if word is None else str(word).encode() for word in (source, target, kind)]
    _call("mount", *words, ctypes.c_ulong(flags), data.encode() or None)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
