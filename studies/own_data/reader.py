"""Reader of one corpus's files, each read once; faults are reported at the key that names the file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..catalog.datasets import CorpusError
from ..text.document import Diagnostics
from ..text.toml_positions import KeyPath
from .cells import digest_limited, read_limited
from .summary import CorpusSummary

CORPUS: KeyPath = ("task", "corpus")
"""The key whose table names files."""


class Reader:
    """Reader of files that are named relative to a folder.

    `files` has the path of each content by its SHA-256. `notes` list what is left out of the files, and
    `summary` has the facts for a plan.
    """

    def __init__(self, diagnostics: Diagnostics, folder: Path) -> None:
        self._diagnostics, self._folder = diagnostics, folder
        self._read: dict[Path, tuple[str, bytes] | None] = {}
        self.files: dict[str, Path] = {}
        self.notes: list[str] = []
        self.summary: CorpusSummary | None = None

    def locate(self, name: str) -> Path:
        """Return the path for a name."""
        return self._folder / name

    def read(
        self, path: Path, *keys: str, text: bool = True, at: KeyPath = CORPUS
    ) -> tuple[str, bytes] | None:
        """Return the SHA-256 and the bytes of a file; None if a fault is reported."""
        if path not in self._read:
            self._read[path] = None
            try:
                data = _read_text(path) if text else read_limited(path)
            except CorpusError as error:
                self._diagnostics.report((*at, *keys), str(error))
            else:
                digest = hashlib.sha256(data).hexdigest()
                self._read[path], self.files[digest] = (digest, data), path
        return self._read[path]

    def digest(self, path: Path, *keys: str) -> str | None:
        """Return the SHA-256 of a file too large to hold in memory; None if a fault is reported."""
        try:
            digest = digest_limited(path)
        except CorpusError as error:
            self.report(str(error), *keys)
            return None
        self.files[digest] = path
        return digest

    @property
    def tokens(self) -> object:
        """The task's kind of tokens, as written in the file."""
        return self._diagnostics.data["task"].get("tokens")

    def report(self, message: str, *keys: str) -> None:
        """Report a fault at a key of the table."""
        self._diagnostics.report((*CORPUS, *keys), message)


def _read_text(path: Path) -> bytes:
    """Return the bytes of a text; raise CorpusError if it is empty or not UTF-8."""
    data = read_limited(path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path}: {_position(data, error.start)}: expected UTF-8, got the byte 0x{data[error.start]:02x}"
        ) from error
    if not text.strip():
        raise CorpusError(f"{path}: expected a text, got {'white space only' if text else 'an empty file'}")
    return data


def _position(data: bytes, place: int) -> str:
    """Return the 1-based line and column of a byte after valid UTF-8."""
    before = data[:place]
    line = before[before.rfind(b"\n") + 1 :].decode()
    number = before.count(b"\n") + 1
    return f"line {number:,}, column {len(line) + 1:,}"
