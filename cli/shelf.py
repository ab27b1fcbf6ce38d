"""Corpora as lines and as data: what they are, and where they stand on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine.corpora import Standing


def lines(found: Sequence[Standing]) -> str:
    """Two lines a corpus: its name, size and place; what it is, its licence and where it comes from."""
    width = max(len(each.corpus.name) for each in found)
    return "\n\n".join(
        f"{each.corpus.name:<{width}}   {_size(each):>8}   {_place(each)}\n"
        f"  {each.corpus.title}\n"
        f"  {each.corpus.licence} · {each.corpus.source}"
        for each in found
    )


def data(found: Standing) -> dict[str, Any]:
    """A corpus for a program to read."""
    corpus = found.corpus
    return {
        "name": corpus.name,
        "title": corpus.title,
        "size_mb": corpus.size_mb,
        "here": found.complete,
        "installed": corpus.installed,
        "files": [str(path) for path in found.files],
        "downloads": [{"name": each.name, "urls": list(each.urls)} for each in corpus.downloads],
        "characters": len(corpus.alphabet) + 1,
        "words": corpus.words,
        "licence": corpus.licence,
        "source": corpus.source,
    }


def verdict(found: Standing) -> str:
    """What a check found, in a line, or one for each fault."""
    if found.faults:
        return "\n".join(found.faults)
    state = "as published" if found.complete else _place(found)
    return f"{found.corpus.name}: {state}"


def _size(found: Standing) -> str:
    return "" if found.corpus.size_mb is None else f"{found.corpus.size_mb:.1f} MB"


def _place(found: Standing) -> str:
    corpus = found.corpus
    if corpus.installed:
        return "part of activemem"
    if found.complete:
        return ", ".join(str(path) for path in dict.fromkeys(path.parent for path in found.files))
    return f"{'not all' if found.files else 'not'} here: activemem data fetch {corpus.name}"
