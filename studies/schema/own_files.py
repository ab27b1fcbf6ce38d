"""Reads the files of one's own that `corpus = { … }` names, and says what is wrong with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, model_validator

from ..catalog.datasets import CorpusError
from ..catalog.own_corpora import OwnPart, OwnText
from ..text.diagnostics import Diagnostics
from ..text.strict_model import StrictModel
from ..text.toml_positions import KeyPath

CORPUS: KeyPath = ("task", "corpus")

_SPLITS = ("train", "dev", "test")

Share = Annotated[float, Field(gt=0, lt=1)]
"""How much of a file is held out."""


class _HeldOut(StrictModel):
    """How much of a file is held out."""

    dev: Share = 0.1
    """the share that is the dev split"""
    test: Share = 0.1
    """the share that is the test split"""

    @model_validator(mode="after")
    def check_shares(self) -> _HeldOut:
        """Something is left to train on."""
        if self.dev + self.test >= 1:
            raise ValueError(f"expected dev and test below 1 together, got {self.dev + self.test:g}")
        return self


class _OneText(_HeldOut):
    """A text that is split at the ends of lines: its beginning is for training, its end the test split."""

    path: str


class _ThreeTexts(StrictModel):
    """A file for each split."""

    train: str
    dev: str
    test: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCorpus:
    """A corpus of one's own: the table that names its files, what is known of them, and where they are.

    `files` has the path of each content by its SHA-256; it is empty where the content was read earlier.
    """

    written: str  # the table as JSON
    facts: BaseModel
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])

    def to_dict(self) -> dict[str, Any]:
        """What a store keeps, so that a study that ran is read without its files."""
        return {"written": self.written, "facts": self.facts.model_dump(mode="json")}


class _Reader:
    """The files of one corpus, each read once; what is wrong is noted at the key that names it."""

    def __init__(self, diagnostics: Diagnostics, folder: Path) -> None:
        self._diagnostics, self._folder = diagnostics, folder
        self._read: dict[str, tuple[str, bytes] | None] = {}
        self.files: dict[str, Path] = {}

    def read(self, name: str, *keys: str) -> tuple[str, bytes] | None:
        """The SHA-256 and the bytes of a file; None if there is something wrong with it."""
        if name not in self._read:
            path, self._read[name] = self._folder / name, None
            try:
                data = _read_text(path)
            except CorpusError as error:
                self.report(str(error), *keys)
            else:
                digest = hashlib.sha256(data).hexdigest()
                self._read[name], self.files[digest] = (digest, data), path
        return self._read[name]

    def report(self, message: str, *keys: str) -> None:
        """Note what is wrong at a key of the table."""
        self._diagnostics.report_error((*CORPUS, *keys), message)


def read_own_corpus(
    diagnostics: Diagnostics, folder: Path, earlier: Mapping[str, Any] | None = None
) -> OwnCorpus | None:
    """The corpus of one's own that `[task] corpus` describes, if it is a table; faults are noted.

    Paths are relative to `folder`. `earlier` is what `OwnCorpus.to_dict` gave: where it is of the same table,
    no file is read.
    """
    task = diagnostics.document.data.get("task")
    table = task.get("corpus") if isinstance(task, Mapping) else None
    kind = _KINDS.get(str(task.get("name"))) if isinstance(task, Mapping) else None
    if not isinstance(table, Mapping) or kind is None:
        return None
    facts_class, read = kind
    written = json.dumps(table, sort_keys=True, default=str)
    if earlier is not None and earlier["written"] == written:
        return OwnCorpus(written=written, facts=facts_class.model_validate(earlier["facts"]))
    reader, before = _Reader(diagnostics, folder), len(diagnostics.faults)
    facts = read(diagnostics, reader, table)
    if facts is None or len(diagnostics.faults) > before:
        diagnostics.invalid.add(CORPUS)
        return None
    return OwnCorpus(written=written, facts=facts, files=reader.files)


def _own_text(diagnostics: Diagnostics, reader: _Reader, table: Mapping[str, Any]) -> OwnText | None:
    """A text in a file for each split, or in one that is split; None if faults are noted."""
    if not {"path", "train"} & table.keys():
        reader.report('expected { path = "my.txt" }, or a file each for train, dev and test')
        return None
    if "path" not in table:
        named = diagnostics.validate(_ThreeTexts, CORPUS, table)
        found = named and {split: reader.read(getattr(named, split), split) for split in _SPLITS}
        if not found or None in found.values():
            return None
        whole = {split: (*read, 0, len(read[1])) for split, read in found.items() if read}
        return _facts(whole)
    one = diagnostics.validate(_OneText, CORPUS, table)
    read = one and reader.read(one.path, "path")
    if one is None or read is None:
        return None
    ends = _split_at_line_ends(read[1], one)
    if ends is None:
        lines = len(read[1].splitlines())
        reader.report(
            f"{one.path}: expected a text that can be split at the ends of lines, {one.dev:g} for dev and "
            f"{one.test:g} for test, got {lines} line{'' if lines == 1 else 's'}",
            "path",
        )
        return None
    starts = (0, *ends[:-1])
    parts = zip(_SPLITS, starts, ends, strict=True)
    return _facts({split: (*read, start, stop) for split, start, stop in parts})


def _facts(splits: Mapping[str, tuple[str, bytes, int, int]]) -> OwnText:
    """What is known of a text, given for each split the SHA-256 and the bytes of its file, and its part."""
    alphabet = set[int]().union(*(set(data) for _, data, _, _ in splits.values())) - {ord("\n")}
    parts = {
        split: OwnPart(
            sha256=sha256,
            start=start,
            stop=stop,
            lines=data.count(b"\n", start, stop) + (not data.endswith(b"\n", start, stop)),
        )
        for split, (sha256, data, start, stop) in splits.items()
    }
    return OwnText(**parts, alphabet=bytes(sorted(alphabet)).hex())


def _split_at_line_ends(data: bytes, shares: _HeldOut) -> tuple[int, int, int] | None:
    """Where train, dev and test end: behind the lines in which their shares do; None if a split is empty."""
    ends = [
        data.find(b"\n", round(len(data) * share)) + 1
        for share in (1 - shares.dev - shares.test, 1 - shares.test)
    ]
    return (ends[0], ends[1], len(data)) if 0 < ends[0] < ends[1] < len(data) else None


def _read_text(path: Path) -> bytes:
    """The bytes of a text; CorpusError if there are none, or if they are not UTF-8."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise CorpusError(f"{path}: expected a file, got none") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CorpusError(f"{path}: expected a file: {reason}") from error
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path}: {_position(data, error.start)}: expected UTF-8, got the byte 0x{data[error.start]:02x}"
        ) from error
    if not text.strip():
        raise CorpusError(f"{path}: expected a text, got {'white space alone' if text else 'an empty file'}")
    return data


def _position(data: bytes, place: int) -> str:
    """The line and the column, both from 1, of a byte behind valid UTF-8."""
    before = data[:place]
    line = before[before.rfind(b"\n") + 1 :].decode()
    number = before.count(b"\n") + 1
    return f"line {number:,}, column {len(line) + 1:,}"


_KINDS = {"language_model": (OwnText, _own_text)}
"""The tasks that take files of one's own: what is known of them, and what reads it."""
