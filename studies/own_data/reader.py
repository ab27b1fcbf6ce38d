"""Reader of a user's corpus, which reads each file once, and reports faults at the key that names it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import quoted
from ..catalog.datasets import CorpusError
from ..catalog.own_corpora import OwnDocuments, OwnPairs, OwnSequences, OwnText
from ..text.document import Diagnostics
from ..text.toml_positions import KeyPath
from .cells import digest_in_pieces, read_limited
from .rows import USUAL_SPLITS
from .summary import CorpusSummary

_FORMS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_SPLIT = re.compile(r"^([a-z]+)(?=$|[-_.])")
_SHARD = re.compile(r"-[0-9]+-of-[0-9]+$")

Files = Mapping[str, Sequence[Path]]
"""The files of each split by name; a single file, or a folder without splits, is all for training."""


def find_files(path: Path, names: Mapping[str, str] | None = None) -> tuple[str, Files]:
    """Find the format and the data files of each split at a path.

    In a folder, the names of Parquet files begin with their split. If they have unusual names, `names` maps
    train, dev and test to these names. Raise CorpusError for unknown formats or missing splits.
    """
    if not path.is_dir():
        form = _FORMS.get(path.suffix.lower())
        if form is None:
            raise CorpusError(
                f"{path}: expected a file that ends in {', '.join(_FORMS)}, got '{path.suffix}'"
            )
        return form, {"train": [path]}
    found: dict[str, list[Path]] = {}
    for each in sorted(path.rglob("*.parquet")):
        inside = each.relative_to(path)
        found.setdefault(_split_in_name(inside, is_usual=not names), []).append(each)
    if not found:
        raise CorpusError(f"{path}: expected a folder with Parquet files, got none of them")
    usual = {USUAL_SPLITS[name]: name for name in found if name in USUAL_SPLITS}
    wanted = names or usual
    known = ", ".join(map(quoted, found))
    if lacking := [name for name in wanted.values() if name not in found]:
        raise CorpusError(
            f"{path}: expected the split{'s' if lacking[1:] else ''} {', '.join(lacking)}, got {known}"
        )
    if "train" not in wanted:
        raise CorpusError(
            f"{path}: expected a split named 'train', got {known}; name the splits, as in splits = "
            f'{{ train = "{quoted(next(iter(found)))}" }}'
        )
    return "parquet", {split: found[name] for split, name in wanted.items()}


def _split_in_name(path: Path, *, is_usual: bool) -> str:
    """Return the split in the name of a file: `test` for `test-00000-of-00001.parquet`.

    If a file's name is only a number, the split is the name of its folder. A usual split is also found at the
    beginning of the name of the file or of a folder around it; without one, the split is `train`.
    """
    if not is_usual:
        name = _SHARD.sub("", path.stem)
        return path.parent.name if name.isdecimal() and path.parent.name else name
    begins = (_SPLIT.match(each.name.lower()) for each in (path, *path.parents))
    return next((each[1] for each in begins if each and each[1] in USUAL_SPLITS), "train")


CORPUS: KeyPath = ("task", "corpus")
"""The key whose table names files."""


OwnFacts = OwnText | OwnDocuments | OwnPairs | OwnSequences
"""The facts about a user's corpus, which are part of a trial's settings."""

Read = tuple[OwnFacts, CorpusSummary]
"""The facts about a corpus for trials, and those for a plan."""


class Reader:
    """Reader of the user's files, which a study names relative to its folder.

    `files` has the path of each content by its SHA-256. `notes` list the parts of the files that are left
    out, `warnings` what is missing.
    """

    def __init__(self, diagnostics: Diagnostics, folder: Path) -> None:
        self._diagnostics, self._folder = diagnostics, folder
        self._read: dict[Path, tuple[str, bytes] | None] = {}
        self.files: dict[str, Path] = {}
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def locate(self, name: str) -> Path:
        """Return the path of a file or folder that the study names."""
        return self._folder / name

    def read(
        self, path: Path, *keys: str, text: bool = True, at: KeyPath = CORPUS
    ) -> tuple[str, bytes] | None:
        """Return the SHA-256 and the bytes of a file, or report a fault."""
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
        """Return the SHA-256 of a file of any size, or report a fault."""
        try:
            digest = digest_in_pieces(path)
        except CorpusError as error:
            self.report(str(error), *keys)
            return None
        self.files[digest] = path
        return digest

    @property
    def tokens(self) -> object:
        """The kind of tokens in `[task] tokens`, or None."""
        return self._diagnostics.data["task"].get("tokens")

    def report(self, message: str, *keys: str) -> None:
        """Report a fault of `[task] corpus`, or of a key in it."""
        self._diagnostics.report((*CORPUS, *keys), message)


def _read_text(path: Path) -> bytes:
    data = read_limited(path)
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
