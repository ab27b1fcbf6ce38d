"""Findings of a check: a file or a folder, what is wrong with it, and its size."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class FindingKind(StrEnum):
    """Kinds of findings, the gravest first."""

    DAMAGED = "damaged"  # its bytes are not those that were written
    UNREADABLE = "unreadable"  # it has a name of the store's and cannot be read
    INCOMPLETE = "incomplete"  # a trial's row is there and its metrics are not
    FOREIGN = "foreign"  # no store wrote it
    UNSEALED = "unsealed"  # written before there were seals: damage would not be noticed
    LEFTOVER = "leftover"  # nothing reads it any more

    @property
    def is_fault(self) -> bool:
        """Return whether something of the store is lost until it is repaired."""
        return self in {FindingKind.DAMAGED, FindingKind.UNREADABLE, FindingKind.INCOMPLETE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong; `size` is in bytes, and 0 where there is no file."""

    kind: FindingKind
    path: Path
    reason: str
    size: int


def size_bytes(path: Path) -> int:
    """Return the size of a file, or of all files in a folder."""
    try:
        if path.is_dir() and not path.is_symlink():
            return sum(size_bytes(inner) for inner in path.iterdir())
        return path.lstat().st_size
    except OSError:  # removed meanwhile, or not to be looked into
        return 0
