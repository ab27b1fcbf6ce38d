"""Facts about large files of the user's own data, kept in the user's cache folder until a file changes."""

from __future__ import annotations

import hashlib
import json
import os
import time
from array import array
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from .limits import MAX_DATA_VARIABLE
from .summary import CorpusSummary, PieceBounds

_MIN_BYTES = 1_000_000
"""Smaller files are read faster than anything kept about them."""

_MAX_AGE_S = 30 * 24 * 3600
"""What has not been used for so long is removed."""

FactsT = TypeVar("FactsT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class KeptFacts:
    """The file with what is known of a corpus; its name is a hash of the task and of its files' states."""

    path: Path

    @classmethod
    def of(cls, folder: Path, table: Mapping[str, Any], task: Mapping[str, Any]) -> KeptFacts | None:
        """Return the file for a corpus; None if its files are small.

        A file's state is its path, size, times of change and number on its disk. All files of a folder count.
        """
        states = [state for name in _texts(table) for state in _states(folder / name)]
        if sum(size for _, size, *_ in states) < _MIN_BYTES:
            return None
        depends = [_code_digest(), os.environ.get(MAX_DATA_VARIABLE), task, states]
        digest = hashlib.sha256(json.dumps(depends, sort_keys=True, default=str).encode()).hexdigest()
        home = os.environ.get("XDG_CACHE_HOME")
        place = (Path(home) if home else Path.home() / ".cache") / "activemem"
        return cls(place / f"data-{digest[:32]}.json")

    def load(self, facts: type[FactsT]) -> tuple[FactsT, dict[str, Path], CorpusSummary] | None:
        """Return the facts, the path of each content, and the summary; None if nothing sound is kept."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            os.utime(self.path)
            summary = found["summary"]
            summary["lengths"] = {
                kind: tuple(array("Q", side) for side in sides) for kind, sides in summary["lengths"].items()
            }
            summary["pieces"] = {name: PieceBounds(*bounds) for name, bounds in summary["pieces"].items()}
            summary |= {name: tuple(summary[name]) for name in ("notes", "warnings")}
            files = {digest: Path(path) for digest, path in found["files"].items()}
            return facts.model_validate(found["facts"]), files, CorpusSummary(**summary)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
            return None

    def save(self, facts: BaseModel, files: Mapping[str, Path], summary: CorpusSummary) -> None:
        """Keep what is known, and remove what has not been used for long; a full disk is no fault."""
        told = {field.name: getattr(summary, field.name) for field in fields(summary)}
        told["lengths"] = {kind: [list(side) for side in sides] for kind, sides in summary.lengths.items()}
        found = {
            "facts": facts.model_dump(mode="json"),
            "files": {digest: str(path) for digest, path in files.items()},
            "summary": told,
        }
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            beside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
            beside.write_text(json.dumps(found), encoding="utf-8")
            beside.replace(self.path)
            for other in self.path.parent.glob("data-*.json*"):
                if time.time() - other.stat().st_mtime > _MAX_AGE_S:
                    other.unlink()


def _texts(value: object) -> Iterator[str]:
    """Yield every text of a table, among which are the names of its files."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)


def _states(path: Path) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield the state of a file, or of everything in a folder; nothing if there is none."""
    with suppress(OSError, ValueError):
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        for each in found:
            now = each.stat()
            if not each.is_dir():
                yield str(each.absolute()), now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino


def _code_digest() -> str:
    """Return a digest of the code that reads files."""
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()
