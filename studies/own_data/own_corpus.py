"""The user's own corpus and tokenizer, read from files or restored from a study's record.

Facts about large files are cached in the user's cache folder until a file changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ...storage.files import replacing
from ..catalog.own_corpora import OwnDocuments, OwnPairs, OwnSequences, OwnText, OwnTokenizer
from ..catalog.tasks.spec import DEFAULT_PIECES
from ..text.document import Diagnostics
from ..text.strict_model import StrictModel
from .cells import MAX_DATA_VARIABLE
from .reader import CORPUS, Reader
from .rows import CLASSES, NUMBERS, TAGS
from .summary import CorpusSummary, PieceBounds
from .tables import PAIR_FORMS, SEQUENCE_FORMS, read_pairs, read_sequences
from .texts import TEXT_FORMS, read_own_documents, read_own_text
from .tokenizers import TOKENIZER, TokenizerFile, read_tokenizer

_MIN_BYTES = 1_000_000
"""Smaller files are not cached, because reading them is faster."""

_MAX_AGE_S = 30 * 24 * 3600
"""The age after which an unused cache entry is removed."""

FactsT = TypeVar("FactsT", bound=BaseModel)


def _cache_file(folder: Path, table: Mapping[str, Any], task: Mapping[str, Any]) -> Path | None:
    """Return the file that caches the facts about a corpus, or None for small files.

    Its name is a hash of the task and of the files' states, so that changed files have another cache file. A
    file's state is its path, size, modification times and inode. All files of a folder count.
    """
    states = [state for name in _texts(table) for state in _states(folder / name)]
    if sum(size for _, size, *_ in states) < _MIN_BYTES:
        return None
    # the facts also depend on this package's own code, and on the size limit
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        code.update(path.read_bytes())
    depends = [code.hexdigest(), os.environ.get(MAX_DATA_VARIABLE), task, states]
    digest = hashlib.sha256(json.dumps(depends, sort_keys=True, default=str).encode()).hexdigest()
    home = os.environ.get("XDG_CACHE_HOME")
    place = (Path(home) if home else Path.home() / ".cache") / "activemem"
    return place / f"data-{digest[:32]}.json"


def _load_facts(cache: Path, facts: type[FactsT]) -> tuple[FactsT, dict[str, Path], CorpusSummary] | None:
    """Return the cached facts, the path of each file by its SHA-256, and the summary.

    Return None if there is no valid cache file.
    """
    try:
        found = json.loads(cache.read_text(encoding="utf-8"))
        os.utime(cache)  # marks the entry as used, so that `_save_facts` does not delete it by its age
        summary = found["summary"]
        summary["lengths"] = {
            kind: tuple(array("Q", side) for side in sides) for kind, sides in summary["lengths"].items()
        }
        summary["pieces"] = {name: PieceBounds(*bounds) for name, bounds in summary["pieces"].items()}
        summary |= {name: tuple(summary[name]) for name in ("notes", "warnings")}
        files = {digest: Path(path) for digest, path in found["files"].items()}
        return facts.model_validate(found["facts"]), files, CorpusSummary(**summary)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def _save_facts(cache: Path, facts: BaseModel, files: Mapping[str, Path], summary: CorpusSummary) -> None:
    """Write the cache file, and delete cache files that were not used for 30 days.

    Errors such as a full disk are ignored, since a cache is never needed.
    """
    stored = {field.name: getattr(summary, field.name) for field in fields(summary)}
    stored["lengths"] = {kind: [list(side) for side in sides] for kind, sides in summary.lengths.items()}
    found = {
        "facts": facts.model_dump(mode="json"),
        "files": {digest: str(path.absolute()) for digest, path in files.items()},
        "summary": stored,
    }
    with suppress(OSError):
        with replacing(cache) as temporary:  # another process never sees half a file
            temporary.write_text(json.dumps(found), encoding="utf-8")
        for other in cache.parent.glob("data-*.json"):
            if time.time() - other.stat().st_mtime > _MAX_AGE_S:
                other.unlink()


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)


def corpus_paths(value: object) -> Iterator[str]:
    """Yield the paths in a table `corpus`, or in one of its values.

    Columns and shares of rows are left out.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (path for each in value for path in corpus_paths(each))
    elif isinstance(value, Mapping):
        first = next((key for key in ("path", "documents", "train") if key in value), None)
        keys = (first, "dev", "test") if first else ("source", "target")
        yield from (path for key in keys for path in corpus_paths(value.get(key)))


def _states(path: Path) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield the path, size, times and inode of a file, or of all files in a folder, to detect changes.

    Yield nothing for a missing path.
    """
    with suppress(OSError, ValueError):
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        for each in found:
            now = each.stat()
            if not each.is_dir():
                yield str(each.absolute()), now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino


_Read = Callable[[Diagnostics, Reader, Mapping[str, Any]], BaseModel | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCorpus:
    """The user's own files in a study, and facts about them.

    `written` has the tables that name the files. `facts` describe the corpus, None for a published corpus;
    `tokenizer` describes a pretrained tokenizer. `files` has the path of each content by its SHA-256, and
    `summary` has the facts for a plan; both are empty if the content was read earlier. `pieces` is the
    default size of bpe vocabularies if the text is too small for the usual size.
    """

    written: str  # the tables as JSON
    facts: BaseModel | None = None
    tokenizer: OwnTokenizer | None = None
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    summary: CorpusSummary | None = None
    pieces: int | None = None

    @property
    def paths(self) -> list[str]:
        """The files and folders of the corpus, as the study names them."""
        if self.facts is None:
            return []
        found = json.loads(self.written)
        return list(corpus_paths(found if self.tokenizer is None else found["corpus"]))

    def to_dict(self) -> dict[str, Any]:
        """Return this corpus as a dictionary, for the study's record in a store.

        It allows loading the study later without the user's files.
        """
        pieces = {} if self.pieces is None else {"pieces": self.pieces}
        found = {"facts": self.facts, "tokenizer": self.tokenizer}
        facts = {key: each.model_dump(mode="json") for key, each in found.items() if each is not None}
        return {"written": self.written, **facts, **pieces}

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
    """Read the corpus and tokenizer of the user that `[task]` names, if any.

    Paths are relative to `folder`.
    """
    reader, corpus = Reader(diagnostics, folder), _read_corpus(diagnostics, folder)
    if not _names_tokenizer(diagnostics):
        return corpus
    tokenizer = read_tokenizer(diagnostics, reader)
    if tokenizer is None:
        diagnostics.invalid.add(TOKENIZER)
        return corpus
    corpus = corpus or OwnCorpus(written="")
    return replace(
        corpus, written=_written(diagnostics), tokenizer=tokenizer, files={**corpus.files, **reader.files}
    )


def _read_corpus(diagnostics: Diagnostics, folder: Path) -> OwnCorpus | None:
    found = _own_table(diagnostics)
    if found is None:
        return None
    table, facts_class, read = found
    reader, before = Reader(diagnostics, folder), len(diagnostics.faults)
    cache, written = _cache_file(folder, table, diagnostics.data["task"]), _written(diagnostics)
    if cache and (known := _load_facts(cache, facts_class)):
        return _own_corpus(written, *known)
    facts = read(diagnostics, reader, table)
    if facts is None or len(diagnostics.faults) > before:
        diagnostics.invalid.add(CORPUS)
        return None
    summary = reader.summary and reader.summary.with_notes(reader.notes)
    if cache and summary:
        _save_facts(cache, facts, reader.files, summary)
    return _own_corpus(written, facts, reader.files, summary)


def _own_corpus(
    written: str, facts: BaseModel, files: Mapping[str, Path], summary: CorpusSummary | None
) -> OwnCorpus:
    pieces = None
    if summary and (pieces := summary.default_pieces(DEFAULT_PIECES)):
        summary = summary.with_notes([f"pieces = {pieces:,} by default, since the text is small"])
    return OwnCorpus(written=written, facts=facts, files=files, summary=summary, pieces=pieces)


def recall_own_corpus(diagnostics: Diagnostics, earlier: Mapping[str, Any] | None) -> OwnCorpus | None:
    """Return the corpus that the store describes; None if `[task]` names no file of the user.

    `earlier` is the result of `OwnCorpus.to_dict` when the study ran. If it does not fit the tables that name
    the files, report a fault.
    """
    found, named = _own_table(diagnostics), _names_tokenizer(diagnostics)
    if found is None and not named:
        return None
    written = _written(diagnostics)
    try:
        if earlier is not None and earlier["written"] == written:
            pieces = earlier.get("pieces")
            return OwnCorpus(
                written=written,
                facts=None if found is None else found[1].model_validate(earlier["facts"]),
                tokenizer=OwnTokenizer.model_validate(earlier["tokenizer"]) if named else None,
                pieces=pieces if isinstance(pieces, int) else None,
            )
    except (ValidationError, KeyError):
        pass
    message = (
        "the store does not describe these files; give the path of the study file instead of its name, so "
        "that they are read"
    )
    for path in [CORPUS] * (found is not None) + [TOKENIZER] * named:
        diagnostics.report(path, message)
        diagnostics.invalid.add(path)
    return None


def _own_table(diagnostics: Diagnostics) -> tuple[Mapping[str, Any], type[BaseModel], _Read] | None:
    """Return the table `[task] corpus`, the class for its facts, and its reader.

    Return None if `[task] corpus` is not a table, or if the task cannot use the user's files.
    """
    task = diagnostics.data.get("task")
    table = task.get("corpus") if isinstance(task, Mapping) else None
    kind = _KINDS.get(str(task.get("name"))) if isinstance(task, Mapping) else None
    if not isinstance(table, Mapping) or kind is None:
        return None
    return (
        (table, OwnDocuments, read_own_documents)
        if kind[0] is OwnText and "documents" in table
        else (table, *kind)
    )


def _names_tokenizer(diagnostics: Diagnostics) -> bool:
    task = diagnostics.data.get("task")
    return isinstance(task, Mapping) and task.get("name") == "language_model" and "tokenizer" in task


def _written(diagnostics: Diagnostics) -> str:
    """Return the entries of `[task]` that name the user's files, as JSON text.

    Without a tokenizer, it is only the corpus table, as in records from before tokenizers were supported.
    """
    task = diagnostics.data["task"]
    named = {key: task[key] for key in ("corpus", "tokenizer") if key in task}
    return json.dumps(named if "tokenizer" in task else task["corpus"], sort_keys=True, default=str)


_KINDS: Mapping[str, tuple[type[BaseModel], _Read]] = {
    "language_model": (OwnText, read_own_text),
    "translation": (OwnPairs, read_pairs),
    "sequence_classification": (OwnSequences, partial(read_sequences, kind=CLASSES)),
    "sequence_regression": (OwnSequences, partial(read_sequences, kind=NUMBERS)),
    "token_classification": (OwnSequences, partial(read_sequences, kind=TAGS)),
}
"""The tasks that accept the user's own files, with the class of their facts and their reader."""

_FORMS: Mapping[type[BaseModel], tuple[type[StrictModel], ...]] = {
    OwnText: TEXT_FORMS,
    OwnPairs: PAIR_FORMS,
    OwnSequences: SEQUENCE_FORMS,
}


def own_data_forms() -> Iterator[tuple[str, str, type[StrictModel]]]:
    """Yield each form of a table of the user's files: the task, its key in `[task]`, and the form's class."""
    for task, (facts, _) in _KINDS.items():
        yield from ((task, "corpus", form) for form in _FORMS[facts])
    yield "language_model", "tokenizer", TokenizerFile
