"""Views of datasets: their sizes, licences and sources, and their folders on this machine."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from ...engine.corpora.availability import Availability
from ...engine.run.planning import describe_location
from ...plugins import OWN
from ...studies.catalog.datasets import KINDS, Corpus, Dataset, ParallelCorpus, Treebank, dataset_owner
from ..pages import DatasetEntry

_WIDTH = 80
_MILLION = 1_000_000


def format_datasets(availabilities: Sequence[Availability]) -> str:
    """Return the datasets under a heading for each kind."""
    width = max(len(each.dataset.name) for each in availabilities)
    sizes = max(len(_size(each.dataset)) for each in availabilities)
    parts: list[str] = []
    for heading, kind in KINDS.items():
        of_kind = [each for each in availabilities if isinstance(each.dataset, kind)]
        parts += [heading] if of_kind else []
        parts += [_lines(each, width, sizes) for each in of_kind]
    return "\n\n".join(parts)


def dataset_entry(availability: Availability) -> DatasetEntry:
    """Return the entry of a dataset for JSON output."""
    dataset = availability.dataset
    sizes: dict[str, Any] = {}
    match dataset:
        case Corpus():
            sizes = {
                "size_mb": dataset.size_mb,
                "characters": len(dataset.alphabet) + 1,
                "words": dataset.word_vocab_size,
            }
        case ParallelCorpus():
            sizes = {"languages": dataset.languages, "pairs": dataset.pairs}
        case Treebank():
            sizes = {"sentences": dataset.sentences}
    return DatasetEntry(
        kind=next(heading for heading, kind in KINDS.items() if isinstance(dataset, kind)),
        name=dataset.name,
        title=dataset.title,
        **sizes,
        here=availability.complete,
        installed=dataset.installed,
        files=availability.files,
        missing=availability.missing,
        downloads=[
            {"name": each.name, "urls": list(each.urls), "size": each.size} for each in dataset.downloads
        ],
        by_hand=dataset.manual_instructions,
        licence=dataset.licence,
        source=dataset.source,
        owner=dataset_owner(dataset.name),
        faults=availability.faults,
    )


def format_check(availability: Availability) -> str:
    """Return the result of a check: one line, or one for each fault and each missing file."""
    name = availability.dataset.name
    if availability.faults or (availability.files and not availability.complete):
        return "\n".join(
            [
                *availability.faults,
                *(f"{name}: expected {files}, got nothing" for files in availability.missing),
            ]
        )
    if not availability.complete:
        return f"{name}: {describe_location(availability)}"
    counted = isinstance(availability.dataset, Treebank) and availability.dataset.digest is None
    return f"{name}: {'the number of sentences is ' if counted else ''}as published"


def _lines(availability: Availability, width: int, sizes: int) -> str:
    dataset = availability.dataset
    languages = " to ".join(dataset.languages) if isinstance(dataset, ParallelCorpus) else None
    owner = dataset_owner(dataset.name)
    words = (languages, dataset.licence, "" if owner == OWN else owner)
    about = [" · ".join(filter(None, words)), dataset.source]
    if len(" · ".join(about)) <= _WIDTH - 2:
        about = [" · ".join(about)]
    return "\n".join(
        [
            f"{dataset.name:<{width}}   {_size(dataset):>{sizes}}   {describe_location(availability)}",
            *(
                textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
                for text in (dataset.title, *about)
            ),
        ]
    )


def _size(dataset: Dataset) -> str:
    match dataset:
        case Corpus(size_mb=float(size)):
            return f"{size:.1f} MB"
        case ParallelCorpus(pairs=pairs):
            return f"{pairs / _MILLION:.1f} M pairs" if pairs >= _MILLION else f"{pairs:,} pairs"
        case Treebank(sentences=sentences):
            return f"{sum(sentences.values()):,} trees"
        case _:
            return ""
