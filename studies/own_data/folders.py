"""Which files a path stands for: itself, or those of a folder that Hugging Face `datasets` has written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..catalog.datasets import CorpusError
from .values import split_named

_FORMS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
_SPLIT = re.compile(r"^([a-z]+)(?=$|[-_.])")

Files = Mapping[str, Sequence[Path]]
"""The files of each split, by its name; of one file, or of a folder without splits, all are to train on."""


def find_files(path: Path) -> tuple[str, Files]:
    """The format of what is at a path, and its files; CorpusError."""
    if not path.is_dir():
        form = _FORMS.get(path.suffix.lower())
        if form is None:
            raise CorpusError(
                f"{path}: expected a file that ends in {', '.join(_FORMS)}, got '{path.suffix}'"
            )
        return form, {"train": [path]}
    if (path / "dataset_dict.json").is_file():
        names = _strings(path / "dataset_dict.json", "splits")
        return "arrow", _by_split(path, {name: _arrow_files(path / name) for name in names})
    if (path / "state.json").is_file():
        return "arrow", {"train": _arrow_files(path)}
    found = sorted(path.rglob("*.parquet"))
    if not found:
        raise CorpusError(
            f"{path}: expected a folder as save_to_disk of Hugging Face datasets writes it, or one with "
            "Parquet files, got neither"
        )
    splits: dict[str, list[Path]] = {}
    for each in found:
        splits.setdefault(_split_in_name(each.relative_to(path)), []).append(each)
    return "parquet", _by_split(path, splits)


def _by_split(path: Path, found: Files) -> Files:
    """The files of the splits that are known; others, such as one without labels, are left out."""
    splits = {split: files for name, files in found.items() if (split := split_named(name)) is not None}
    if "train" not in splits:
        raise CorpusError(f"{path}: expected a split train, got {', '.join(found) or 'none'}")
    return splits


def _split_in_name(path: Path) -> str:
    """The split that a file's name, or its folder's, begins with, as in train-00000-of-00002.parquet."""
    for name in (path.name, *(folder.name for folder in path.parents)):
        begins = _SPLIT.match(name.lower())
        if begins and split_named(begins[1]):
            return begins[1]
    return "train"


def _arrow_files(folder: Path) -> list[Path]:
    """The files of one split, in their order."""
    return [folder / name for name in _strings(folder / "state.json", "_data_files")]


def _strings(path: Path, key: str) -> list[str]:
    """The names that a file of `datasets` lists below a key; CorpusError if it is no such file."""
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))[key]
        return [each if isinstance(each, str) else str(each["filename"]) for each in listed]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorpusError(f"{path}: expected what save_to_disk writes, with {key}, got: {error}") from error
