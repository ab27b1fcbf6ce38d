"""A user's text: one file that is split, or one file for each split."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from ..catalog.own_corpora import SPLITS, OwnPart, OwnText
from ..text.document import Diagnostics
from ..text.strict_model import StrictModel
from .reader import CORPUS, Reader
from .summary import summarise_text

Share = Annotated[float, Field(gt=0, lt=1)]
"""The share of a file that is held out."""


class _HeldOut(StrictModel):
    dev: Share = 0.1
    """the share of the dev split"""
    test: Share = 0.1
    """the share of the test split"""

    @model_validator(mode="after")
    def _check_shares(self) -> _HeldOut:
        check_shares(self.dev, self.test)
        return self


class _OneText(_HeldOut):
    """A text that is split at line ends: the beginning is for training, the end is the test split."""

    path: str


class _ThreeTexts(StrictModel):
    """A file for each split."""

    train: str
    dev: str
    test: str


def check_shares(dev: float, test: float) -> None:
    """Raise ValueError if nothing is left to train on."""
    if dev + test >= 1:
        raise ValueError(f"expected dev and test below 1 together, got {dev + test:g}")


def read_own_text(diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any]) -> OwnText | None:
    """Return a text from a file for each split, or from one file that is split.

    None if faults are reported.
    """
    if not {"path", "train"} & table.keys():
        reader.report(
            'expected { path = "my.txt" }, one file each for train, dev and test, or { documents = "shards" }'
        )
        return None
    if "path" not in table:
        named = diagnostics.validate(_ThreeTexts, CORPUS, table)
        found = named and {
            split: reader.read(reader.locate(getattr(named, split)), split) for split in SPLITS
        }
        if not found or None in found.values():
            return None
        whole = {split: (*read, _first_byte(read[1]), len(read[1])) for split, read in found.items() if read}
        return _facts(reader, whole)
    one = diagnostics.validate(_OneText, CORPUS, table)
    read = one and reader.read(reader.locate(one.path), "path")
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
    starts = (_first_byte(read[1]), *ends[:-1])
    parts = zip(SPLITS, starts, ends, strict=True)
    return _facts(reader, {split: (*read, start, stop) for split, start, stop in parts})


def _first_byte(data: bytes) -> int:
    """Return the offset of a text's first byte, after a byte order mark."""
    return len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0


def _facts(reader: Reader, splits: Mapping[str, tuple[str, bytes, int, int]]) -> OwnText:
    """Return the facts about a text; each split has the SHA-256 and the bytes of its file, and its range."""
    texts = {split: data[start:stop] for split, (_, data, start, stop) in splits.items()}
    reader.summary = summarise_text(texts, reader.tokens or "characters")
    alphabet = set[int]().union(*map(set, texts.values())) - {ord("\n")}
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
    """Return where train, dev and test end, at line ends; None if a split is empty."""
    ends = [
        data.find(b"\n", round(len(data) * share)) + 1
        for share in (1 - shares.dev - shares.test, 1 - shares.test)
    ]
    return (ends[0], ends[1], len(data)) if 0 < ends[0] < ends[1] < len(data) else None
