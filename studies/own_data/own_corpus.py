"""The user's own corpus and tokenizer, read from files or restored from a study's record.

Facts about large files are cached in the user's cache folder until a file changes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ...grammar.analysis.measured_costs import cache_folder
from ...storage.files import replacing
from ..catalog.own_corpora import OwnDocuments, OwnPairs, OwnSequences, OwnText, OwnTokenizer
from ..catalog.tasks.spec import DEFAULT_PIECES
from ..schema.factors import TableLevels
from ..text.document import Diagnostics
from ..text.strict_model import StrictModel, as_table
from .files import CORPUS, MAX_DATA_VARIABLE, Reader, parquet_files
from .rows import CLASSES, NUMBERS, TAGS
from .start import (
    check_given,
    complete_levels,
    complete_train,
    file_sha256,
    read_starts,
    start_tables,
)
from .summary import CorpusSummary, OwnFacts, Read
from .tables import PAIR_FORMS, SEQUENCE_FORMS, read_pairs, read_sequences
from .texts import TEXT_FORMS, read_texts
from .tokenizers import TOKENIZER, TokenizerFile, read_tokenizer

_MIN_BYTES = 1_000_000
"""Smaller files are not cached, because reading them is faster."""


def _cache_file(folder: Path, table: Mapping[str, Any], task: Mapping[str, Any]) -> Path | None:
    """Return the file that caches the facts about a corpus, or None for small files.

    Its name is a hash of the task and of the files' states, so that changed files have another cache file. A
    file's state is its path, size, modification times and inode. All files of a folder count.
    """
    states = [state for name in corpus_paths(table) for state in _states(folder / name)]
    if sum(size for _, size, *_ in states) < _MIN_BYTES:
        return None
    # the facts also depend on this package's own code, and on the size limit
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        code.update(path.read_bytes())
    depends = [code.hexdigest(), os.environ.get(MAX_DATA_VARIABLE), task, states]
    digest = hashlib.sha256(json.dumps(depends, sort_keys=True, default=str).encode()).hexdigest()
    return cache_folder() / f"data-{digest[:32]}.json"


def corpus_paths(value: object) -> Iterator[str]:
    """Yield the paths, but not columns and shares, in a table `corpus` or in one of its values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (path for each in value for path in corpus_paths(each))
    elif isinstance(value, Mapping):
        first = next((key for key in ("path", "documents", "train") if key in value), None)
        keys = (first, "dev", "test") if first else ("source", "target")
        yield from (path for key in keys for path in corpus_paths(value.get(key)))


def _states(path: Path) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield path, size, times and inode of a file or a folder's files, if any, to detect changes."""
    with suppress(OSError, ValueError):
        found = parquet_files(path) if path.is_dir() else [path]
        for each in found:
            now = each.stat()
            if not each.is_dir():
                yield str(each.absolute()), now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino


_RECORDED = ("written", "facts", "tokenizer", "pieces", "starts")
"""What the store keeps of a corpus: not the paths on this machine."""


class OwnCorpus(BaseModel):
    """The user's own files in a study, and facts about them.

    `written` has the tables that name the files. `facts` describe the corpus, None for a published corpus;
    `tokenizer` describes a pretrained tokenizer, and `starts` has the SHA-256 of models that trainings start
    from, by their written names. `files` has the path of each content by its SHA-256, and
    `summary` has the facts for a plan; both are empty if the content was read earlier. `pieces` is the
    default size of bpe vocabularies if the text is too small for the usual size.
    """

    model_config = ConfigDict(frozen=True)

    written: str  # the tables as JSON
    facts: OwnFacts | None = None
    tokenizer: OwnTokenizer | None = None
    files: dict[str, Path] = Field(default={})
    summary: CorpusSummary | None = None
    pieces: int | None = None
    starts: dict[str, str] = Field(default={})

    @property
    def paths(self) -> list[str]:
        """The files and folders of the corpus, as the study names them."""
        return [] if self.facts is None else list(corpus_paths(json.loads(self.written)["corpus"]))

    def to_dict(self) -> dict[str, Any]:
        """Return this corpus as a dictionary, with which a study can be loaded later without its files."""
        found = self.model_dump(mode="json", include=set(_RECORDED))
        return {key: each for key, each in found.items() if each not in (None, {})}

    def complete(self, tables: Mapping[str, Any], levels: TableLevels) -> tuple[dict[str, Any], TableLevels]:
        """Return a study's tables and its levels that are tables, with facts in place of names of files."""
        completed = dict(tables)
        if self.facts is not None or self.tokenizer is not None:
            completed["task"] = self.complete_task(tables["task"])
        if self.starts:
            completed["train"] = complete_train(tables["train"], self.starts)
            levels = complete_levels(levels, self.starts)
        return completed, levels

    def complete_task(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the `[task]` table with the facts about the user's files in place of their names.

        `pieces` gets its default if the table has no such key.
        """
        pieces = {} if self.pieces is None else {"pieces": self.pieces}
        found = {"corpus": self.facts, "tokenizer": self.tokenizer}
        return {
            **pieces,
            **task,
            **{key: each.model_dump() for key, each in found.items() if each is not None},
        }


def read_own_corpus(diagnostics: Diagnostics, folder: Path) -> OwnCorpus | None:
    """Read the files that a study names, if any, relative to `folder`.

    They are the corpus and the tokenizer of `[task]`, and trained models of `[train] start`.
    """
    corpus = _read_task_files(diagnostics, folder)
    if not any(start_tables(diagnostics.data)):
        return corpus
    models = read_starts(diagnostics, folder)
    starts = {name: file_sha256(path) for name, path in models.items()}
    check_given(diagnostics, starts)
    files = {starts[name]: path for name, path in models.items()}
    corpus = corpus or OwnCorpus(written=_written(diagnostics))
    return corpus.model_copy(update={"starts": starts, "files": {**corpus.files, **files}})


def _read_task_files(diagnostics: Diagnostics, folder: Path) -> OwnCorpus | None:
    reader, corpus = Reader(diagnostics, folder), _read_corpus(diagnostics, folder)
    if not _names_tokenizer(diagnostics):
        return corpus
    tokenizer = read_tokenizer(diagnostics, reader)
    if tokenizer is None:
        diagnostics.invalid.add(TOKENIZER)
        return corpus
    corpus = corpus or OwnCorpus(written=_written(diagnostics))
    return corpus.model_copy(update={"tokenizer": tokenizer, "files": {**corpus.files, **reader.files}})


def _read_corpus(diagnostics: Diagnostics, folder: Path) -> OwnCorpus | None:
    own = _own_table(diagnostics)
    if own is None:
        return None
    table, kind = own
    cache = _cache_file(folder, table, diagnostics.data["task"])
    with suppress(OSError, ValueError):  # there is no such file, or it is not valid
        if cache:
            return OwnCorpus.model_validate_json(cache.read_bytes())
    reader, before = Reader(diagnostics, folder), len(diagnostics.faults)
    read = kind.read(diagnostics, reader, table)
    if read is None or len(diagnostics.faults) > before:
        diagnostics.invalid.add(CORPUS)
        return None
    facts, summary = read
    pieces = summary.default_pieces(DEFAULT_PIECES)
    notes = [f"pieces = {pieces:,} by default, since the text is small"] if pieces else []
    found = OwnCorpus(
        written=_written(diagnostics),
        facts=facts,
        files={digest: path.absolute() for digest, path in reader.files.items()},
        summary=replace(
            summary,
            notes=(*notes, *reader.notes, *summary.notes),
            warnings=(*reader.warnings, *summary.warnings),
        ),
        pieces=pieces,
    )
    if cache:
        with suppress(OSError), replacing(cache) as temporary:  # another process never sees half a file
            temporary.write_text(found.model_dump_json(), encoding="utf-8")
    return found


def recall_own_corpus(diagnostics: Diagnostics, earlier: Mapping[str, Any] | None) -> OwnCorpus | None:
    """Return the corpus that the store describes; None if `[task]` names no file of the user.

    `earlier` is the result of `OwnCorpus.to_dict` when the study ran. If it does not fit the tables that name
    the files, report a fault.
    """
    own, named = _own_table(diagnostics), _names_tokenizer(diagnostics)
    starts = [path for path, _ in start_tables(diagnostics.data)]
    if own is None and not named and not starts:
        return None
    with suppress(ValueError):
        recorded = {key: (earlier or {}).get(key) for key in _RECORDED}
        known = OwnCorpus.model_validate({**recorded, "starts": recorded["starts"] or {}})
        fits = isinstance(known.facts, own[1].facts if own else NoneType)
        if known.written == _written(diagnostics) and fits and (known.tokenizer is not None) == named:
            return known
    message = (
        "the store does not describe these files; give the path of the study file instead of its name, so "
        "that they are read"
    )
    for path in [CORPUS] * (own is not None) + [TOKENIZER] * named + starts:
        diagnostics.report(path, message)
        diagnostics.invalid.add(path)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """How a task reads the user's own files.

    `read` reads them, `facts` has the classes of its result, and `forms` the classes of their table.
    """

    read: Callable[[Diagnostics, Reader, Mapping[str, Any]], Read | None]
    facts: tuple[type[OwnFacts], ...]
    forms: tuple[type[StrictModel], ...]


_KINDS = {
    "language_model": _Kind(read=read_texts, facts=(OwnText, OwnDocuments), forms=TEXT_FORMS),
    "translation": _Kind(read=read_pairs, facts=(OwnPairs,), forms=PAIR_FORMS),
    **{
        name: _Kind(read=partial(read_sequences, kind=rows), facts=(OwnSequences,), forms=SEQUENCE_FORMS)
        for name, rows in {
            "sequence_classification": CLASSES,
            "sequence_regression": NUMBERS,
            "token_classification": TAGS,
        }.items()
    },
}
"""The tasks that accept the user's own files."""


def _own_table(diagnostics: Diagnostics) -> tuple[Mapping[str, Any], _Kind] | None:
    """Return the table `[task] corpus` with its kind, or None if the task reads no files of the user."""
    task = as_table(diagnostics.data.get("task"))
    table, kind = task.get("corpus"), _KINDS.get(str(task.get("name")))
    return (table, kind) if isinstance(table, Mapping) and kind is not None else None


def _names_tokenizer(diagnostics: Diagnostics) -> bool:
    task = as_table(diagnostics.data.get("task"))
    return task.get("name") == "language_model" and "tokenizer" in task


def _written(diagnostics: Diagnostics) -> str:
    """Return the entries that name the user's files, as JSON text."""
    task = as_table(diagnostics.data.get("task"))
    named = {key: task[key] for key in ("corpus", "tokenizer") if key in task}
    if starts := [table for _, table in start_tables(diagnostics.data)]:
        named["start"] = starts
    return json.dumps(named, sort_keys=True, default=str)


def own_data_forms() -> Iterator[tuple[str, str, type[StrictModel]]]:
    """Yield each form of a table of the user's files: the task, its key in `[task]`, and the form's class."""
    for task, kind in _KINDS.items():
        yield from ((task, "corpus", form) for form in kind.forms)
    yield "language_model", "tokenizer", TokenizerFile
