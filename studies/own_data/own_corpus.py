"""The user's corpus that `corpus = { … }` describes, and its record in a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from ..catalog.own_corpora import OwnPairs, OwnSequences, OwnText
from ..catalog.tasks.spec import DEFAULT_PIECES
from ..text.diagnostics import Diagnostics
from .kept_facts import KeptFacts
from .labelled import read_classes, read_numbers, read_tags
from .pairs import read_pairs
from .reader import CORPUS, Reader
from .summary import CorpusSummary
from .texts import read_own_text

_Read = Callable[[Diagnostics, Reader, Mapping[str, Any]], BaseModel | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCorpus:
    """A corpus of the user: the table that names its files, the facts about them, and their places.

    `files` has the path of each content by its SHA-256, and `summary` what a plan reports; both are empty
    if the content was read earlier. `pieces` is the default size of bpe vocabularies where the text is too
    small for the usual one.
    """

    written: str  # the table as JSON
    facts: BaseModel
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    summary: CorpusSummary | None = None
    pieces: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what a store keeps, so that a recorded study is read without its files."""
        pieces = {} if self.pieces is None else {"pieces": self.pieces}
        return {"written": self.written, "facts": self.facts.model_dump(mode="json"), **pieces}

    def complete_task(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the table `[task]` with the facts in place of the files, and a default of `pieces`."""
        pieces = {} if self.pieces is None else {"pieces": self.pieces}
        return {**pieces, **task, "corpus": self.facts.model_dump()}


def read_own_corpus(diagnostics: Diagnostics, folder: Path) -> OwnCorpus | None:
    """Read the user's own corpus that `[task] corpus` describes, if it is a table; faults are reported.

    Paths are relative to `folder`.
    """
    found = _own_table(diagnostics)
    if found is None:
        return None
    table, facts_class, read = found
    reader, before = Reader(diagnostics, folder), len(diagnostics.faults)
    kept = KeptFacts.of(folder, table, diagnostics.document.data["task"])
    if kept and (known := kept.load(facts_class)):
        return _own_corpus(_written(table), *known)
    facts = read(diagnostics, reader, table)
    if facts is None or len(diagnostics.faults) > before:
        diagnostics.invalid.add(CORPUS)
        return None
    summary = reader.summary and reader.summary.with_notes(reader.notes)
    if kept and summary:
        kept.save(facts, reader.files, summary)
    return _own_corpus(_written(table), facts, reader.files, summary)


def _own_corpus(
    written: str, facts: BaseModel, files: Mapping[str, Path], summary: CorpusSummary | None
) -> OwnCorpus:
    pieces = None
    if summary and (pieces := summary.default_pieces(DEFAULT_PIECES)):
        summary = summary.with_notes([f"pieces = {pieces:,} by default, since the text is small"])
    return OwnCorpus(written=written, facts=facts, files=files, summary=summary, pieces=pieces)


def recall_own_corpus(diagnostics: Diagnostics, earlier: Mapping[str, Any] | None) -> OwnCorpus | None:
    """Return the user's own corpus of a recorded study from what `OwnCorpus.to_dict` gave; no file is read.

    Where the record does not fit the table, that is reported as a fault.
    """
    found = _own_table(diagnostics)
    if found is None:
        return None
    table, facts_class, _ = found
    written = _written(table)
    try:
        if earlier is not None and earlier["written"] == written:
            pieces = earlier.get("pieces")
            return OwnCorpus(
                written=written,
                facts=facts_class.model_validate(earlier["facts"]),
                pieces=pieces if isinstance(pieces, int) else None,
            )
    except ValidationError:
        pass
    message = (
        "the record of this study in the store does not describe these files, and a record's files are "
        "never opened: name the study's file instead"
    )
    diagnostics.report_error(CORPUS, message)
    diagnostics.invalid.add(CORPUS)
    return None


def _own_table(
    diagnostics: Diagnostics,
) -> tuple[Mapping[str, Any], type[BaseModel], _Read] | None:
    """Return the table of files, the class of its facts and what reads it; None where no table is."""
    task = diagnostics.document.data.get("task")
    table = task.get("corpus") if isinstance(task, Mapping) else None
    kind = _KINDS.get(str(task.get("name"))) if isinstance(task, Mapping) else None
    return None if not isinstance(table, Mapping) or kind is None else (table, *kind)


def _written(table: Mapping[str, Any]) -> str:
    return json.dumps(table, sort_keys=True, default=str)


_KINDS: Mapping[str, tuple[type[BaseModel], _Read]] = {
    "language_model": (OwnText, read_own_text),
    "translation": (OwnPairs, read_pairs),
    "sequence_classification": (OwnSequences, read_classes),
    "sequence_regression": (OwnSequences, read_numbers),
    "token_classification": (OwnSequences, read_tags),
}
"""The tasks that take files of one's own: what is known of them, and what reads it."""
