"""Views of datasets: their sizes, licences and sources, and their folders on this machine."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...plugins import OWN
from ...studies.catalog.datasets import KINDS, Corpus, Dataset, ParallelCorpus, Treebank, all_datasets

if TYPE_CHECKING:
    from ..pages import Availability

_WIDTH = 80
_MILLION = 1_000_000


def format_datasets(datasets: Sequence[Availability]) -> str:
    """Return the datasets under a heading for each kind."""
    names = max(len(each.dataset.name) for each in datasets)
    sizes = max(len(_size(each.dataset)) for each in datasets)
    parts: list[str] = []
    for heading, kind in KINDS.items():
        of_kind = [each for each in datasets if isinstance(each.dataset, kind)]
        parts += [heading] if of_kind else []
        parts += ["\n".join(_lines(each, names, sizes)) for each in of_kind]
    return "\n\n".join(parts)


def format_check(found: Availability) -> str:
    """Return a line for each fault and each missing file of a dataset, or a single line without any."""
    name, dataset = found.dataset.name, found.dataset
    if found.faults or (found.files and not found.here):
        missing = (f"{name}: expected {files}, got nothing" for files in found.missing)
        return "\n".join([*found.faults, *missing])
    if not found.here:
        return f"{name}: {found.location}"
    counted = isinstance(dataset, Treebank) and dataset.digest is None
    return f"{name}: {'the number of sentences is ' if counted else ''}as published"


def _lines(found: Availability, names: int, sizes: int) -> list[str]:
    dataset = found.dataset
    languages = " to ".join(dataset.languages) if isinstance(dataset, ParallelCorpus) else ""
    owner = "" if (owner := all_datasets().owner(dataset.name)) == OWN else owner
    about = [" · ".join(filter(None, (languages, dataset.licence, owner))), dataset.source]
    if len(" · ".join(about)) <= _WIDTH - 2:
        about = [" · ".join(about)]
    return [
        f"{dataset.name:<{names}}   {_size(dataset):>{sizes}}   {found.location}",
        *(
            textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
            for text in (dataset.title, *about)
        ),
    ]


def _size(dataset: Dataset) -> str:
    match dataset:
        case Corpus(size_mb=float(size)):
            return f"{size:.1f} MB"
        case ParallelCorpus(pairs=pairs):
            return f"{pairs / _MILLION:.1f} M pairs" if pairs >= _MILLION else f"{pairs:,} pairs"
        case Treebank():
            return f"{sum(dataset.sentences.values()):,} trees"
        case _:
            return ""
