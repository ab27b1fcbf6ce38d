"""One split in numbers: how its files are written for good, and mapped into memory."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ...storage.durable_write import replacing
from ..corpora.files import DataError, locked

ABOUT = "about.json"
"""The file of a prepared corpus that says what its other files hold."""

_TYPES = {"u1": torch.uint8, "i2": torch.int16, "i4": torch.int32, "i8": torch.int64, "f8": torch.float64}


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One split in tokens, mapped into memory.

    `tokens` is one-dimensional, of the smallest type that holds them; every line ends in a mark. Line i is
    `tokens[lines[i]:lines[i + 1]]` and has `line_words[i]` words, its end included. `words` is their sum, and
    perplexities per word divide by it. Line i has `line_bytes[i]` bytes of UTF-8 in the original text, and
    the first token has `first_bytes`; both are None if tokens stand for no text.
    """

    tokens: Tensor
    lines: Tensor
    line_words: Tensor
    words: int
    line_bytes: Tensor | None = None
    first_bytes: int = 0

    @property
    def line_lengths(self) -> Tensor:
        """Return the tokens of each line, its end among them."""
        return self.lines[1:] - self.lines[:-1]

    def first_lines(self, count: int) -> Split:
        """Return this many lines from the beginning."""
        lines, words = self.lines[: count + 1], self.line_words[:count]
        tokens = self.tokens[: int(lines[-1])]
        sizes = None if self.line_bytes is None else self.line_bytes[:count]
        return replace(
            self, tokens=tokens, lines=lines, line_words=words, words=int(words.sum()), line_bytes=sizes
        )

    def padded_lines(self, chosen: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return lines by number as rows of int64, padded with 0 at the end, and their lengths (rows,)."""
        numbers = torch.tensor(chosen)
        starts, ends = self.lines[numbers], self.lines[numbers + 1]
        places = zip(starts.tolist(), ends.tolist(), strict=True)
        rows = [self.tokens[start:end].long() for start, end in places]
        return pad_sequence(rows, batch_first=True), ends - starts


def smallest_dtype(vocab: int) -> np.dtype[Any]:
    """Return the smallest signed type (or bytes) that holds the numbers of a vocabulary."""
    small = np.uint8 if vocab <= 1 << 8 else np.int16 if vocab <= 1 << 15 else np.int32
    return np.dtype(small).newbyteorder("<")


def encoded_folder(folder: Path, parts: Sequence[str], depends: Sequence[object], *, pieces: bool) -> Path:
    """Return the folder of a prepared corpus: its parts, and a hash of all that its content depends on.

    With `pieces` it depends on the version of SentencePiece as well.
    """
    version = [importlib.metadata.version("sentencepiece")] if pieces else []
    digest = hashlib.sha256(json.dumps([*depends, *version]).encode()).hexdigest()
    return folder / "encoded" / "-".join([*parts, digest[:12]])


def prepared(place: Path, name: str, write: Callable[[Path], Mapping[str, Any]]) -> dict[str, Any]:
    """Return the description of a prepared corpus's files; if they are missing, `write` fills their folder.

    The folder appears when it is complete. If several processes ask at once, one writes and the others wait
    for it. Raises DataError if the folder cannot be written.
    """
    try:
        if not place.is_dir():
            with locked(place):
                _fill_once(place, write)
    except OSError as error:
        raise DataError(f"{name}: its numbers cannot be written: {error}") from error
    return json.loads((place / ABOUT).read_text("utf-8"))


def _fill_once(place: Path, write: Callable[[Path], Mapping[str, Any]]) -> None:
    if place.is_dir():  # another process was first
        return
    for left in place.parent.glob(f".{place.name}.*"):
        shutil.rmtree(left)  # of a process that died
    with replacing(place) as folder:
        folder.mkdir()
        about = json.dumps(write(folder), indent=2)
        (folder / ABOUT).write_text(about, encoding="utf-8")


def open_split(place: Path, name: str, files: Mapping[str, Mapping[str, Any]]) -> Split:
    """Return a split from its folder; `files` says the type and the number of numbers of each file.

    Raises DataError if the length of a file has changed.
    """
    tokens, lines, words = (
        open_numbers(place, f"{name}.{kind}", files) for kind in ("tokens", "lines", "words")
    )
    sizes = open_numbers(place, f"{name}.bytes", files) if f"{name}.bytes" in files else None
    return Split(tokens=tokens, lines=lines, line_words=words, words=int(words.sum()), line_bytes=sizes)


def write_numbers(path: Path, numbers: NDArray[Any]) -> dict[str, str | int]:
    """Write a file of numbers; return its description."""
    path.write_bytes(numbers.tobytes())
    return {"dtype": numbers.dtype.str[1:], "size": len(numbers)}


def open_numbers(place: Path, name: str, files: Mapping[str, Mapping[str, Any]]) -> Tensor:
    """Open a file of numbers, mapped into memory. Raises DataError if its length has changed."""
    path, about = place / name, files[name]
    kind, size = _TYPES[about["dtype"]], about["size"]
    if (found := path.stat().st_size) != size * kind.itemsize:
        expected = f"expected {size * kind.itemsize:,} bytes, got {found:,}"
        raise DataError(f"{path}: {expected}; remove {path.parent} to have it made anew")
    return torch.from_file(str(path), shared=False, size=size, dtype=kind)
