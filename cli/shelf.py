"""What can be trained on as lines and as data: what it is, and where it stands on this machine."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from ..engine.corpora import Standing
from ..studies.corpora import Corpus
from ..studies.datasets import Dataset
from ..studies.library import KINDS
from ..studies.parallel_corpora import ParallelCorpus
from ..studies.treebanks import Treebank

_WIDTH = 80
_MILLION = 1_000_000


def lines(found: Sequence[Standing]) -> str:
    """A heading a kind; of each its name, size and place, what it is, its licence and where it comes from."""
    width = max(len(each.dataset.name) for each in found)
    sizes = max(len(_size(each.dataset)) for each in found)
    parts: list[str] = []
    for heading, kind in KINDS.items():
        of_kind = [each for each in found if isinstance(each.dataset, kind)]
        parts += [heading] if of_kind else []
        parts += [_lines(each, width, sizes) for each in of_kind]
    return "\n\n".join(parts)


def data(found: Standing) -> dict[str, Any]:
    """One of them for a program to read."""
    dataset = found.dataset
    return {
        "kind": next(heading for heading, kind in KINDS.items() if isinstance(dataset, kind)),
        "name": dataset.name,
        "title": dataset.title,
        **_own(dataset),
        "here": found.complete,
        "installed": dataset.installed,
        "files": [str(path) for path in found.files],
        "missing": list(found.missing),
        "downloads": [
            {"name": each.name, "urls": list(each.urls), "size": each.size} for each in dataset.downloads
        ],
        "by_hand": dataset.by_hand,
        "licence": dataset.licence,
        "source": dataset.source,
    }


def verdict(found: Standing) -> str:
    """What a check found, in a line, or one for each fault and for what is missing of one that is here."""
    name = found.dataset.name
    if found.faults or (found.files and not found.complete):
        return "\n".join(
            [*found.faults, *(f"{name}: expected {files}, got nothing" for files in found.missing)]
        )
    if not found.complete:
        return f"{name}: {_place(found)}"
    counted = isinstance(found.dataset, Treebank) and found.dataset.digest is None
    return f"{name}: {'as many sentences ' if counted else ''}as published"


def _lines(found: Standing, width: int, sizes: int) -> str:
    dataset = found.dataset
    languages = " to ".join(dataset.languages) if isinstance(dataset, ParallelCorpus) else None
    about = [" · ".join(filter(None, (languages, dataset.licence))), dataset.source]
    if len(" · ".join(about)) <= _WIDTH - 2:
        about = [" · ".join(about)]
    return "\n".join(
        [
            f"{dataset.name:<{width}}   {_size(dataset):>{sizes}}   {_place(found)}",
            *(
                textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
                for text in (dataset.title, *about)
            ),
        ]
    )


def _own(dataset: Dataset) -> dict[str, Any]:
    """What only one kind has."""
    match dataset:
        case Corpus():
            return {
                "size_mb": dataset.size_mb,
                "characters": len(dataset.alphabet) + 1,
                "words": dataset.words,
            }
        case ParallelCorpus():
            return {"languages": list(dataset.languages), "pairs": dataset.pairs}
        case Treebank():
            return {"sentences": dict(dataset.sentences)}
        case _:
            return {}


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


def _place(found: Standing) -> str:
    dataset = found.dataset
    if dataset.installed:
        return "part of activemem"
    if found.faults:
        return f"damaged: activemem data check {dataset.name}"
    if found.complete:
        return str(found.place)
    if found.files:
        return f"not all here: activemem data fetch {dataset.name}"
    return f"{'not here' if dataset.by_hand is None else 'by hand'}: activemem data fetch {dataset.name}"
