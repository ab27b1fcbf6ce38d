"""Token files of one split, written durably and mapped into memory."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ...storage.files import remove, replacing, temporary_paths
from ..core.process import derive_seed
from ..corpora.files import DataError, locked

ABOUT = "about.json"
"""The file that describes the other files of a prepared corpus."""

_TYPES = {"u1": torch.uint8, "i2": torch.int16, "i4": torch.int32, "i8": torch.int64, "f8": torch.float64}


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One tokenised split, mapped into memory.

    `tokens` is one-dimensional, of the smallest sufficient type; every line ends in a mark, and another one
    may precede the first line. Line i is `tokens[lines[i]:lines[i + 1]]` and has `line_words[i]` words, its
    end included. Line i has `line_bytes[i]` bytes of UTF-8 in the original text, and the first token has
    `first_bytes`; `line_bytes` is None if the tokens do not determine a text. A line's end has `end_bytes`:
    1, or 0 for the end of a document.
    """

    tokens: Tensor
    lines: Tensor
    line_words: Tensor
    line_bytes: Tensor | None = None
    first_bytes: int = 0
    end_bytes: int = 1

    @property
    def words(self) -> int:
        """Return the number of words, by which perplexities per word divide."""
        return int(self.line_words.sum())

    @property
    def first_words(self) -> int:
        """Return how many words at the start of a split cannot be scored: 1 or 0.

        It is 1, because the first token has no context, or 0 if the first token is a mark before the text.
        """
        return int(self.lines[0] == 0)

    @property
    def line_lengths(self) -> Tensor:
        """Return the number of tokens of each line, its end included."""
        return self.lines[1:] - self.lines[:-1]

    def first_lines(self, count: int) -> Split:
        """Return the first `count` lines."""
        lines, words = self.lines[: count + 1], self.line_words[:count]
        tokens = self.tokens[: int(lines[-1])]
        sizes = None if self.line_bytes is None else self.line_bytes[:count]
        return replace(self, tokens=tokens, lines=lines, line_words=words, line_bytes=sizes)

    def padded_lines(self, chosen: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return the lines with these indices, (rows, n), int64, padded with 0, and their lengths (rows,)."""
        numbers = torch.tensor(chosen)
        starts, ends = self.lines[numbers], self.lines[numbers + 1]
        places = zip(starts.tolist(), ends.tolist(), strict=True)
        rows = [self.tokens[start:end].long() for start, end in places]
        return pad_sequence(rows, batch_first=True), ends - starts


def iter_shuffled(
    rows: Tensor, *, batch_size: int, seed: int, what: str, position: int, buckets: Tensor | None = None
) -> Iterator[list[int]]:
    """Yield shuffled batches of rows without end, from batch number `position` on.

    The order of each pass depends on the seed, on `what`, and on the number of the pass. A random remainder
    that does not fill a batch is dropped. With `buckets`, a number for every row of the split, a batch has
    rows of one bucket or of successive ones.
    """
    batches = len(rows) // batch_size
    drawn, chosen = -1, list[Tensor]()
    for number in count(position):
        if number // batches != drawn:
            drawn = number // batches
            # a seed for each pass, so that a resumed training gets the same order as an uninterrupted one
            generator = torch.Generator().manual_seed(derive_seed(seed, f"{what} of pass {drawn}"))
            kept = rows[torch.randperm(len(rows), generator=generator)[: batches * batch_size]]
            if buckets is None:
                chosen = list(kept.split(batch_size))
            else:
                sorted_ones = kept[torch.argsort(buckets[kept], stable=True)].split(batch_size)
                order = torch.randperm(batches, generator=generator).tolist()
                chosen = [sorted_ones[place] for place in order]
        yield chosen[number % batches].tolist()


def smallest_dtype(vocab: int) -> np.dtype[Any]:
    """Return the smallest integer type for the numbers of a vocabulary."""
    # int16 and not uint16, for which torch has few operations
    small = np.uint8 if vocab <= 1 << 8 else np.int16 if vocab <= 1 << 15 else np.int32
    return np.dtype(small).newbyteorder("<")


def encoded_folder(folder: Path, parts: Sequence[str], depends: Sequence[object], *, pieces: bool) -> Path:
    """Return the folder of an encoded corpus.

    Its name consists of `parts` and of a hash of `depends`, the values that determine the files. With
    `pieces` the hash also depends on the version of SentencePiece.
    """
    version = [importlib.metadata.version("sentencepiece")] if pieces else []
    digest = hashlib.sha256(json.dumps([*depends, *version]).encode()).hexdigest()
    return folder / "encoded" / "-".join([*parts, digest[:12]])


def prepared(place: Path, name: str, write: Callable[[Path], Mapping[str, Any]]) -> dict[str, Any]:
    """Return the description of a corpus's files, and write the files if they are missing.

    If files are missing, call `write` to fill the folder. The folder appears when it is complete. If several
    processes call it at once, one writes and the others wait. Raise DataError if the folder cannot be
    written.
    """
    try:
        if not place.is_dir():
            with locked(place):
                if not place.is_dir():  # no other process was first
                    for left in temporary_paths(place):  # of processes that died
                        remove(left)
                    with replacing(place) as folder:
                        folder.mkdir()
                        about = json.dumps(write(folder), indent=2)
                        (folder / ABOUT).write_text(about, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{name}: its token ids cannot be written: {error}") from error
    return json.loads((place / ABOUT).read_text("utf-8"))


def open_split(place: Path, name: str, files: Mapping[str, Mapping[str, Any]]) -> Split:
    """Open the files of the split `name` in the folder `place`.

    `files` has the type and length of each file. Raise DataError if the length of a file has changed.
    """
    tokens, lines, words = (
        open_numbers(place, f"{name}.{kind}", files) for kind in ("tokens", "lines", "words")
    )
    sizes = open_numbers(place, f"{name}.bytes", files) if f"{name}.bytes" in files else None
    return Split(tokens=tokens, lines=lines, line_words=words, line_bytes=sizes)


class SplitWriter:
    """Writer of a split's files.

    It takes a few lines at a time. The split begins with `mark`, an array with at most one token; all tokens
    have its type. Leaving the writer's context closes the files.
    """

    def __init__(self, place: Path, name: str, mark: NDArray[Any], *, sizes: bool = False) -> None:
        four = np.dtype("<i4")
        self._types = {"tokens": mark.dtype, "lines": np.dtype("<i8"), "words": four}
        if sizes:
            self._types["bytes"] = four
        self._name, self._counts = name, dict.fromkeys(self._types, 0)
        self._files = {kind: (place / f"{name}.{kind}").open("xb") for kind in self._types}
        self._append("tokens", mark)
        self._append("lines", [len(mark)])

    def add(
        self, tokens: ArrayLike, lengths: ArrayLike, words: ArrayLike, sizes: ArrayLike | None = None
    ) -> None:
        """Append the tokens of some lines, and the size of each line.

        `lengths`, `words` and `sizes` are the numbers of tokens, words and bytes of each line.
        """
        self._append("lines", self._counts["tokens"] + np.cumsum(lengths, dtype="<i8"))
        self._append("tokens", tokens)
        self._append("words", words)
        if sizes is not None:
            self._append("bytes", sizes)

    def about(self) -> dict[str, dict[str, str | int]]:
        """Return the type and length of each file by its name."""
        return {
            f"{self._name}.{kind}": {"dtype": dtype.str[1:], "size": self._counts[kind]}
            for kind, dtype in self._types.items()
        }

    def __enter__(self) -> SplitWriter:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def _append(self, kind: str, numbers: ArrayLike) -> None:
        array = np.asarray(numbers, self._types[kind])
        self._counts[kind] += len(array)
        self._files[kind].write(array.tobytes())


def write_numbers(path: Path, numbers: NDArray[Any]) -> dict[str, str | int]:
    """Write an array to a file, and return its type and length."""
    path.write_bytes(numbers.tobytes())
    return {"dtype": numbers.dtype.str[1:], "size": len(numbers)}


def open_numbers(place: Path, name: str, files: Mapping[str, Mapping[str, Any]]) -> Tensor:
    """Open an array's file, mapped into memory. Raise DataError if its length has changed."""
    path, about = place / name, files[name]
    kind, size = _TYPES[about["dtype"]], about["size"]
    if (found := path.stat().st_size) != size * kind.itemsize:
        expected = f"expected {size * kind.itemsize:,} bytes, got {found:,}"
        raise DataError(f"{path}: {expected}; remove {path.parent} to recreate it")
    # a private mapping: an accidental write to the tensor does not change the file
    return torch.from_file(str(path), shared=False, size=size, dtype=kind)
