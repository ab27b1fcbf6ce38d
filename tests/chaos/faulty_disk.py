"""A disk whose calls fail, or that forgets at a power cut whatever was not flushed.

Both are models of `faulty_disk.c`, which is compiled and loaded by LD_PRELOAD into this program. So a program
that uses them starts itself again, and its forked drivers get their own settings.
"""

import atexit
import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import product
from pathlib import Path

_SOURCE = Path(__file__).with_name("faulty_disk.c")
_LIBRARY = "CHAOS_FAULTY_DISK"
FOR_EVER = 1_000_000_000

CALLS = {"fsync": 60, "rename": 40, "write": 150, "open": 400, "mkdir": 25, "unlink": 40}
"""The calls that can fail, with about as many of each as a driver of the small grid makes."""

_ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


@dataclass(frozen=True, slots=True)
class Injection:
    """Calls that fail with an error, or writes that take half of their bytes if `error` is None."""

    call: str
    error: int | None
    for_ever: bool

    @property
    def kind(self) -> str:
        """Return the kind of fault, for the table of all faults."""
        return "a short write" if self.error is None else f"a failing {self.call}"

    def __str__(self) -> str:
        what = "short" if self.error is None else errno.errorcode[self.error]
        return f"{self.call} {what}{' for ever' if self.for_ever else ''}"


INJECTIONS = [
    *(Injection(call, error, ever) for call, error, ever in product(CALLS, _ERRORS, (False, True))),
    Injection("write", None, for_ever=False),
    Injection("write", None, for_ever=True),
]
"""Each call with each error, once and for ever, and short writes."""


def start_again_with_library() -> None:
    """Start this program again with the library, unless it is loaded. Exit without a C compiler."""
    if _LIBRARY in os.environ:
        atexit.register(shutil.rmtree, Path(os.environ[_LIBRARY]).parent, ignore_errors=True)
        return
    if (compiler := shutil.which("cc")) is None:
        sys.exit("expected the C compiler cc, for a library that makes calls of the file system fail")
    library = Path(tempfile.mkdtemp(prefix="faulty-disk-"), "faulty_disk.so")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl"], check=True, timeout=120
    )
    environment = os.environ | {_LIBRARY: str(library), "LD_PRELOAD": str(library)}
    os.execve(sys.executable, [sys.executable, "-m", "tests.chaos", *sys.argv[1:]], environment)


def use_faults(root: str, settings: dict[str, str]) -> None:
    """Let the calls of this process below a folder follow these settings of the library."""
    os.environ["FAULTY_ROOT"] = root
    os.environ |= {f"FAULTY_{name}": value for name, value in settings.items()}
    ctypes.CDLL(os.environ[_LIBRARY]).faulty_disk_restart()


def error_settings(injection: Injection, first: int, log: Path) -> dict[str, str]:
    """Return the library's settings for an injection from the `first` call on. Faults are lines of `log`."""
    settings = {
        "CALL": injection.call,
        "FIRST": str(first),
        "COUNT": str(FOR_EVER if injection.for_ever else 1),
        "LOG": str(log),
    }
    return settings | ({"SHORT": "1"} if injection.error is None else {"ERROR": str(injection.error)})


def power_settings(shadow: Path, store: Path, *, is_forgetful: bool) -> dict[str, str]:
    """Return the library's settings for a power cut, with a new shadow of a store that is on the disk."""
    shutil.rmtree(shadow, ignore_errors=True)
    for name in ("ids", "files", "dirs"):
        (shadow / name).mkdir(parents=True)
    for path in [store, *store.rglob("*")] if store.is_dir() else []:
        kept = f"i{path.lstat().st_ino}"
        if path.is_dir():
            names = [
                f"i{each.lstat().st_ino}\t{int(each.is_dir())}\t{each.name}\n" for each in path.iterdir()
            ]
            (shadow / "dirs" / kept).write_text("".join(names), encoding="utf-8")
        else:
            (shadow / "files" / kept).write_bytes(path.read_bytes())
    return {"SHADOW": str(shadow)} | ({"FORGETFUL": "1"} if is_forgetful else {})


def cut_power(shadow: Path, store: Path) -> None:
    """Replace a store by what its shadow holds."""
    kept = shadow / "ids" / str(store.stat().st_ino) if store.exists() else None
    root = kept.read_text("utf-8") if kept is not None and kept.exists() else None
    if root is None:
        root = f"i{store.stat().st_ino}" if store.exists() else ""
    shutil.rmtree(store, ignore_errors=True)
    _restore(shadow, root, store)


def _restore(shadow: Path, identity: str, folder: Path) -> None:
    folder.mkdir()
    listing = shadow / "dirs" / identity
    for line in listing.read_text("utf-8").splitlines() if listing.is_file() else []:
        inner, is_folder, name = line.split("\t")
        if is_folder == "1":
            _restore(shadow, inner, folder / name)
        elif (kept := shadow / "files" / inner).is_file():
            shutil.copyfile(kept, folder / name)
        else:  # its bytes were never flushed
            (folder / name).touch()
