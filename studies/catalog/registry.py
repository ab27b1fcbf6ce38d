"""All datasets by name: those of `datasets.toml`, read on first use, and the user's own."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from ...diagnostics import nearest_hint
from ...plugins import Registry
from .datasets import Corpus, CorpusError, Dataset, ParallelCorpus, Treebank

KINDS: dict[str, type[Dataset]] = {"texts": Corpus, "pairs": ParallelCorpus, "treebanks": Treebank}
"""The kinds, in the order in which they are listed."""

DatasetT = TypeVar("DatasetT", bound=Dataset)


def register_dataset(dataset: Dataset) -> None:
    """Add a dataset; ValueError for what is none, and for a name taken by any kind."""
    if not isinstance(dataset, Dataset):
        raise ValueError(f"expected a Corpus, a ParallelCorpus or a Treebank, got {dataset!r}")
    if taken := _datasets().get(dataset.name):
        raise ValueError(f"{taken.KIND} '{dataset.name}' is already defined")
    _datasets().register(dataset.name, dataset)


def dataset_owner(name: str) -> str:
    """Return who provides a dataset: `activemem`, a file, or a package with its version.

    Raises KeyError for an unknown dataset.
    """
    return _datasets().owner(name)


def dataset_code(name: str) -> str | None:
    """Return the plug-in that provides a dataset with a digest of its source; None for built-in ones."""
    return _datasets().code(name) if name in _datasets() else None


def dataset_names(kind: type[Dataset] = Dataset) -> tuple[str, ...]:
    """Return the sorted names of the datasets of one kind, or of all kinds in turn."""
    kinds = (each for each in KINDS.values() if issubclass(each, kind))
    known = sorted(_datasets().items())
    return tuple(name for each in kinds for name, dataset in known if isinstance(dataset, each))


def require_dataset(name: str, kind: type[DatasetT] = Dataset) -> DatasetT:
    """Return the dataset of that kind and name; raise CorpusError with the nearest name or all names."""
    found = _datasets().get(name)
    if not isinstance(found, kind):
        raise CorpusError(f"unknown {kind.KIND} '{name}'{nearest_hint(name, dataset_names(kind))}")
    return found


class _Tables(BaseModel):
    """The tables of `datasets.toml`, by kind and name; an unknown key is as wrong as a missing one."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    texts: dict[str, Corpus]
    pairs: dict[str, ParallelCorpus]
    treebanks: dict[str, Treebank]


@cache
def _datasets() -> Registry[Dataset]:
    """Return the datasets of the file by name; others can be registered."""
    tables = tomllib.loads(Path(__file__).with_name("datasets.toml").read_text(encoding="utf-8"))
    read = _read_tables(tables)
    return Registry("corpus", {**read.texts, **read.pairs, **read.treebanks})


def _read_tables(tables: dict[str, Any]) -> _Tables:
    """Return all datasets with their downloads and files; raise KeyError if a reference is missing."""
    downloads, files = tables.pop("downloads"), tables.pop("files")
    for heading, datasets in tables.items():
        for name, table in datasets.items():
            fetched = [{"name": each, **downloads[each]} for each in table.get("downloads", ())]
            table |= {"name": name, "downloads": fetched}
            _resolve(heading, table, files)
    return _Tables.model_validate(tables)


def _resolve(heading: str, table: dict[str, Any], files: Mapping[str, Any]) -> None:
    """Replace what a dataset's table only names or abbreviates: files, alphabets and ranges."""
    match heading:
        case "texts":
            symbol = re.compile(table["alphabet"].encode())
            table["alphabet"] = b"".join(filter(symbol.fullmatch, (bytes([byte]) for byte in range(256))))
            for part in table["splits"].values():
                part["source"] = files[part["source"]]
        case "pairs":
            for part in chain(*table["files"].values()):
                part |= {side: files[key] for side, key in part.items()}
        case _:
            for split, ranges in table["splits"].items():
                table["splits"][split] = [range(first, last + 1) for first, last in ranges]
