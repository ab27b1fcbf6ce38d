"""Views of datasets: their sizes, licences and sources, and their folders on this machine."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...plugins import OWN
from ...studies.catalog.datasets import KINDS, Treebank, require_dataset

if TYPE_CHECKING:
    from ..pages import DatasetEntry

_WIDTH = 80
_MILLION = 1_000_000


def format_datasets(datasets: Sequence[DatasetEntry]) -> str:
    """Return the datasets under a heading for each kind."""
    names = max(len(each.name) for each in datasets)
    sizes = max(len(_size(each)) for each in datasets)
    parts: list[str] = []
    for heading in KINDS:
        of_kind = [each for each in datasets if each.kind == heading]
        parts += [heading] if of_kind else []
        parts += ["\n".join(_lines(each, names, sizes)) for each in of_kind]
    return "\n\n".join(parts)


def format_check(dataset: DatasetEntry) -> str:
    """Return the result of checking a dataset's files, with a line for each fault.

    Each missing file has a line, too. Without faults, there is a single line.
    """
    name = dataset.name
    if dataset.faults or (dataset.files and not dataset.here):
        missing = (f"{name}: expected {files}, got nothing" for files in dataset.missing)
        return "\n".join([*dataset.faults, *missing])
    if not dataset.here:
        return f"{name}: {dataset.location}"
    published = require_dataset(name)
    counted = isinstance(published, Treebank) and published.digest is None
    return f"{name}: {'the number of sentences is ' if counted else ''}as published"


def _lines(dataset: DatasetEntry, names: int, sizes: int) -> list[str]:
    languages = " to ".join(dataset.languages or ())
    owner = "" if dataset.owner == OWN else dataset.owner
    about = [" · ".join(filter(None, (languages, dataset.licence, owner))), dataset.source]
    if len(" · ".join(about)) <= _WIDTH - 2:
        about = [" · ".join(about)]
    return [
        f"{dataset.name:<{names}}   {_size(dataset):>{sizes}}   {dataset.location}",
        *(
            textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
            for text in (dataset.title, *about)
        ),
    ]


def _size(dataset: DatasetEntry) -> str:
    if dataset.size_mb is not None:
        return f"{dataset.size_mb:.1f} MB"
    if dataset.pairs is not None:
        pairs = dataset.pairs
        return f"{pairs / _MILLION:.1f} M pairs" if pairs >= _MILLION else f"{pairs:,} pairs"
    return "" if dataset.sentences is None else f"{sum(dataset.sentences.values()):,} trees"
