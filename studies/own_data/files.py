"""The user's files: a size limit, the files of a folder, and a reader that reads each file once."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from ...errors import nearest
from ...storage.errors import UnreadableError
from ...storage.files import open_regular
from ..catalog.datasets import CorpusError
from ..catalog.own_corpora import SPLITS
from ..text.document import Diagnostics
from ..text.toml_positions import KeyPath

MAX_DATA_VARIABLE = "ACTIVEMEM_MAX_DATA_GB"
"""The environment variable that raises the size limit."""

RAISE_LIMIT = f"raise the limit, as in {MAX_DATA_VARIABLE}=8"
"""The advice for files that are too large."""

_DEFAULT_GB = 1.0
_GB = 10**9
_MAX_BESIDE = 1000  # files of a folder among which the nearest name is searched


def max_bytes() -> int:
    """Return the size limit of a user's file in bytes. It also limits the rows after decompression."""
    given = os.environ.get(MAX_DATA_VARIABLE, "").strip()
    try:
        size = float(given) if given else _DEFAULT_GB
        if not 0 < size < 10**6:
            raise ValueError
    except ValueError:
        raise CorpusError(
            f"{MAX_DATA_VARIABLE}: expected a number of gigabytes, got {given[:40]!r}"
        ) from None
    return int(size * _GB)


def _read_limited(path: Path) -> bytes:
    """Return the bytes of a regular file of at most `max_bytes()`.

    Raise CorpusError for anything else, such as a device, a pipe or a folder, without reading it.
    """
    limit = max_bytes()
    with _opened(path) as file:
        # another program may write to the file meanwhile, so the size is checked after the read, too
        data = b"" if os.fstat(file.fileno()).st_size > limit else file.read(limit + 1)
        if len(data) > limit or os.fstat(file.fileno()).st_size > limit:
            raise CorpusError(f"{path}: expected at most {limit / _GB:g} GB of data, got more: {RAISE_LIMIT}")
        return data


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with open_regular(path) as file:
            yield file
    except CorpusError:  # from the caller, and a ValueError too
        raise
    except FileNotFoundError as error:
        raise CorpusError(f"{path}: expected a file, got none{_where(path)}") from error
    except UnreadableError as error:
        raise CorpusError(f"{path}: {error}") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CorpusError(f"{path}: expected a file: {reason}") from error


def _where(path: Path) -> str:
    if "{" in path.name:
        return ": a hole cannot name a file, because files are read before holes are filled: write its name"
    folder = path.absolute().parent
    if not folder.is_dir():
        return f": there is no folder {folder}; paths are relative to the study file"
    beside = [each.stem for each in islice(folder.iterdir(), _MAX_BESIDE) if each.suffix == path.suffix]
    near = nearest(path.stem, beside)
    named = f"; nearest: {near}{path.suffix}" if near else ""
    return f" in {folder}{named}; paths are relative to the study file"


USUAL_SPLITS = {**{name: name for name in SPLITS}, **dict.fromkeys(("validation", "valid", "val"), "dev")}
"""The split for each of its usual names, such as dev for `validation`."""

_FORMS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_SPLIT = re.compile(r"^([a-z]+)(?=$|[-_.])")
_DEPTH = 4  # levels of a folder, as in CONFIGURATION/SPLIT/0000.parquet on the Hub
_MAX_INSIDE = 10_000


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder and of the folders in it, down to a few levels.

    Raise CorpusError for a folder that is far larger than one of a data set, such as a home folder.
    """
    found, folders, count = list[Path](), [folder], 0
    for _ in range(_DEPTH):
        inside = list[Path]()
        for each in folders:
            with suppress(PermissionError, FileNotFoundError), os.scandir(each) as entries:
                for entry in entries:
                    count += 1
                    if count > _MAX_INSIDE:
                        got = f"more than {_MAX_INSIDE:,} files and folders"
                        raise CorpusError(f"{folder}: expected the folder of one data set, got {got}")
                    if entry.name.endswith(".parquet"):
                        found.append(each / entry.name)
                    elif entry.is_dir():
                        inside.append(each / entry.name)
        folders = inside
    return sorted(found)


def find_files(path: Path) -> tuple[str, Mapping[str, Sequence[Path]]]:
    """Find the format and the data files of each split at a path.

    A single file, or a folder without splits, is all for training. In a folder, the split of a Parquet file
    is at the beginning of its name, as in `test-00000-of-00001.parquet`, or of the name of a folder around
    it. Raise CorpusError for unknown formats or missing splits.
    """
    if not path.is_dir():
        form = _FORMS.get(path.suffix.lower())
        if form is None:
            raise CorpusError(
                f"{path}: expected a file that ends in {', '.join(_FORMS)}, got '{path.suffix}'"
            )
        return form, {"train": [path]}
    found: dict[str, list[Path]] = {}
    for each in parquet_files(path):
        inside = each.relative_to(path)
        begins = (_SPLIT.match(part.name.lower()) for part in (inside, *inside.parents))
        split = next((begin[1] for begin in begins if begin and begin[1] in USUAL_SPLITS), "train")
        found.setdefault(USUAL_SPLITS[split], []).append(each)
    if "train" not in found:
        got = f"only files of {' and '.join(found)}" if found else "none of them"
        raise CorpusError(f"{path}: expected a folder with Parquet files of the split train, got {got}")
    return "parquet", found


CORPUS: KeyPath = ("task", "corpus")
"""The key whose table names files."""


class Reader:
    """Reader of the user's files, which a study names relative to its folder.

    `files` has the path of each content by its SHA-256. `notes` list the parts of the files that are left
    out, `warnings` what is missing.
    """

    def __init__(self, diagnostics: Diagnostics, folder: Path) -> None:
        self._diagnostics, self._folder = diagnostics, folder
        self._contents: dict[str, bytes] = {}
        self._digests: dict[Path, str | None] = {}
        self._keys: dict[str, tuple[str, ...]] = {}  # the keys in the corpus that name each file
        self.files: dict[str, Path] = {}
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def locate(self, name: str) -> Path:
        """Return the path of a file or folder that the study names."""
        return self._folder / name

    def read(self, path: Path, *keys: str, text: bool = True, at: KeyPath = CORPUS) -> str | None:
        """Read a file, and return its SHA-256; or report a fault, and return None."""
        if path not in self._digests:
            self._digests[path], self._keys[str(path)] = None, keys
            try:
                data = read_text(path) if text else _read_limited(path)
            except CorpusError as error:
                self._diagnostics.report((*at, *keys), str(error))
            else:
                digest = self._digests[path] = hashlib.sha256(data).hexdigest()
                self._contents[digest], self.files[digest] = data, path
        return self._digests[path]

    def digest(self, path: Path, *keys: str) -> str | None:
        """Return the SHA-256 of a file of any size, or report a fault."""
        try:
            with _opened(path) as file:
                found = hashlib.file_digest(file, "sha256")  # pyright: ignore[reportArgumentType] -- has `readinto`
                digest = found.hexdigest()
        except CorpusError as error:
            self.report(str(error), *keys)
            return None
        self.files[digest], self._keys[str(path)] = path, keys
        return digest

    def content(self, digest: str) -> bytes:
        """Return the bytes of a file that was read."""
        return self._contents[digest]

    @property
    def tokens(self) -> object:
        """The kind of tokens in `[task] tokens`, or None."""
        return self._diagnostics.data["task"].get("tokens")

    def report(self, message: str, *keys: str) -> None:
        """Report a fault of a key in `[task] corpus`.

        Without `keys`, it is reported at the key of the file with whose name the message begins, or, if a
        single key names all files, at this key.
        """
        if not keys and self._keys:
            file, known = message.partition(": ")[0], {*self._keys.values()}
            whole = known.pop() if len(known) == 1 else ()
            keys = self._keys.get(file) or self._keys.get(file.partition(" and ")[0], whole)
        self._diagnostics.report((*CORPUS, *keys), message)


def read_text(path: Path) -> bytes:
    """Return the bytes of a text in UTF-8. Raise CorpusError for any other file, and for an empty one."""
    data = _read_limited(path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        *lines, last = data[: error.start].split(b"\n")
        place = f"line {len(lines) + 1:,}, column {len(last.decode()) + 1:,}"
        raise CorpusError(
            f"{path}: {place}: expected UTF-8, got the byte 0x{data[error.start]:02x}"
        ) from error
    if not text.strip():
        raise CorpusError(f"{path}: expected a text, got {'white space only' if text else 'an empty file'}")
    return data
