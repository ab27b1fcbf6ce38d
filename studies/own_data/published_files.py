"""Reader of the user's files of published numbers, which `[study] published` names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..catalog.datasets import CorpusError
from ..catalog.published import PublishedNumbers, own_numbers
from ..text.document import Diagnostics
from ..text.strict_model import as_table
from ..text.toml_positions import KeyPath
from .files import Reader, read_text

_PUBLISHED: KeyPath = ("study", "published")
_MAX_BYTES = 1_000_000  # the text is kept in the store's record of the study


def read_published(diagnostics: Diagnostics, folder: Path) -> PublishedNumbers:
    """Return the published tables that a study can show, with those of its files relative to `folder`."""
    reader, texts = Reader(diagnostics, folder), dict[str, str]()
    for name, at in _named_files(diagnostics).items():
        path = reader.locate(name)
        if digest := reader.read(path, at=at):
            data = reader.content(digest)
            if len(data) > _MAX_BYTES:
                diagnostics.report(at, f"{path}: expected at most 1 MB of published numbers, got more")
            else:
                texts[name] = data.decode()
    return _numbers(diagnostics, texts)


def recall_published(diagnostics: Diagnostics, texts: Mapping[str, str] | None) -> PublishedNumbers:
    """Return the published tables that a study can show, with those in the `texts` that a store kept."""
    named, texts = _named_files(diagnostics), texts or {}
    for name, at in named.items():
        if name not in texts:
            message = (
                f"the store has no copy of '{name}'; give the path of the study file instead of its name, so "
                "that it is read"
            )
            diagnostics.report(at, message)
    return _numbers(diagnostics, {name: texts[name] for name in named if name in texts})


def load_published(path: Path, paper: str | None = None) -> PublishedNumbers:
    """Return the tables in a CSV file of published numbers, without those that come with activemem.

    Without a column `paper`, its numbers are of `paper`, or of a paper with the name of the file.
    Raise CorpusError with all faults of the file.
    """
    text = read_text(path).decode()
    found, faults = own_numbers({path.name: text}, paper)
    if len(text) > _MAX_BYTES:
        raise CorpusError(f"{path}: expected at most 1 MB of published numbers, got more")
    if wrong := faults[path.name]:
        raise CorpusError("\n".join(f"{path}: {fault}" for fault in wrong))
    return found


def _named_files(diagnostics: Diagnostics) -> dict[str, KeyPath]:
    """Return the files that `[study] published` names, each with the path of its key."""
    named = as_table(diagnostics.data.get("study")).get("published", ())
    if isinstance(named, str):
        return {named: _PUBLISHED}
    every = enumerate(named if isinstance(named, list) else ())  # `StudySettings` reports anything else
    return {name: (*_PUBLISHED, number) for number, name in every if isinstance(name, str)}


def _numbers(diagnostics: Diagnostics, texts: Mapping[str, str]) -> PublishedNumbers:
    paper = as_table(diagnostics.data.get("study")).get("paper")
    found, faults = own_numbers(texts, paper if isinstance(paper, str) else None)
    named = _named_files(diagnostics)
    for name, wrong in faults.items():
        for fault in wrong:
            diagnostics.report(named[name], f"{name}: {fault}")
    return replace(found, is_partial=any(faults.values()) or named.keys() != texts.keys())
