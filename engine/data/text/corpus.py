"""A tokenised text corpus, in memory-mapped files.

The first process that needs the files writes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ....studies.catalog.datasets import Corpus, HeldOutFractions, SourceFile
from ....studies.catalog.own_corpora import OwnDocuments, own_name, own_source, tokenizer_dataset
from ....studies.catalog.tasks import LanguageModelSettings, corpus_of_task, vocabulary_size
from ....studies.own_data.cells import RowsError
from ....studies.own_data.texts import iter_documents
from ...corpora.files import DataError, dataset_folder, find_own_file, read_source
from ..token_files import (
    Split,
    SplitWriter,
    encoded_folder,
    open_split,
    prepared,
    smallest_dtype,
    write_numbers,
)
from .symbols import MARK, TextSymbols, encode_units, library_version, train_byte_bpe
from .tokenization import build_vocabulary, limit_vocabulary, sentences_as_lines

FORMAT = 3
"""The version of the files. It grows when their layout or content changes."""

_DOCUMENTS = 1_000  # documents encoded at a time

_LISTS = {"words": "vocabulary.txt", "bpe": "pieces.model", "byte_bpe": "tokenizer.json"}
"""The file of the learnt tokens, for each kind of tokens that is learnt from the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenisedCorpus:
    """A tokenised corpus with its vocabulary.

    Token 0 is the input before the first token of a line, and it is also the padding.

    `sources` are the texts to train on with their weights: one text, or the texts of a mixture.
    """

    vocab: int
    symbols: TextSymbols
    sources: tuple[tuple[float, Split], ...]
    dev: Split
    test: Split

    @property
    def train(self) -> Split:
        """Return the training text of a corpus that has exactly one."""
        ((_, split),) = self.sources
        return split


def open_corpus(task: LanguageModelSettings, folder: Path) -> TokenisedCorpus:
    """Open the text that a `[task]` table names, as tokens.

    `folder` is the folder of all data. The first call writes the tokens below `encoded/`; several processes
    may call it at once. Raise CorpusError for a wrong table, and DataError if the text is missing or differs
    from the published text.
    """
    corpus, place = corpus_of_task(task), _place_of_corpus(task, folder)
    documents = task.corpus if isinstance(task.corpus, OwnDocuments) else None
    if documents is None:
        about = prepared(place, corpus.name, partial(_write, corpus, task, folder))
        sources = {"train": 1.0}
    else:
        about = prepared(place, corpus.name, partial(_write_documents, documents, task, folder))
        weights = (source.weight for source in documents.sources)
        sources = dict(zip(_train_names(documents), weights, strict=True))
    splits: dict[str, Split] = {}
    for name, lossless in about["lossless"].items():
        split = open_split(place, name, about["files"])
        if documents is None:
            split = replace(split, first_bytes=about["first_bytes"][name])
        else:
            split = replace(split, end_bytes=0)
        splits[name] = split if lossless else replace(split, line_bytes=None)
    return TokenisedCorpus(
        vocab=vocabulary_size(task),
        symbols=_symbols(corpus, task, folder, place),
        sources=tuple((weight, splits[name]) for name, weight in sources.items()),
        dev=splits["dev"],
        test=splits["test"],
    )


def _train_names(documents: OwnDocuments) -> list[str]:
    """Return a name for each source of training documents: train, train1, ….

    The documents are stored under these names.
    """
    return ["train", *(f"train{number}" for number in range(1, len(documents.sources)))]


def _place_of_corpus(task: LanguageModelSettings, folder: Path) -> Path:
    corpus = corpus_of_task(task)
    sized = task.tokens in ("bpe", "byte_bpe") or (task.tokens == "words" and corpus.own)
    parts = [corpus.name, task.tokens, *([str(task.pieces)] if sized else [])]
    parts += ["sentences"] if task.batching == "sentences" else []
    sources = [[part.source.size, part.source.digest] for part in corpus.splits.values()]
    depends: list[Any] = [FORMAT, parts, sources]
    if isinstance(task.corpus, OwnDocuments):  # tokens do not depend on the sources' weights
        even = [source.model_copy(update={"weight": 1.0}) for source in task.corpus.sources]
        parts[0] = own_name(task.corpus.model_copy(update={"sources": tuple(even)}))
    if task.tokens == "bpe":
        from . import subwords  # noqa: PLC0415  not every machine that reads characters needs the library

        depends += [corpus.pretokenized, subwords.NORMALISATION]
    if task.tokens == "pretrained" and task.tokenizer is not None:
        depends.append(task.tokenizer.model_dump())
    elif task.tokens == "byte_bpe":
        depends.append(library_version())
    return encoded_folder(folder, parts, depends, pieces=task.tokens == "bpe")


def _symbols(corpus: Corpus, task: LanguageModelSettings, folder: Path, place: Path) -> TextSymbols:
    if task.tokens in _LISTS:
        content = (place / _LISTS[task.tokens]).read_bytes()
        if task.tokens == "byte_bpe":
            return TextSymbols(kind="json", content=content, documents=isinstance(task.corpus, OwnDocuments))
        return TextSymbols(kind=task.tokens, content=content, separated=corpus.pretokenized)
    return _known_symbols(corpus, task, folder)


def _known_symbols(corpus: Corpus, task: LanguageModelSettings, folder: Path) -> TextSymbols:
    """Return the vocabulary of a corpus whose vocabulary is fixed.

    It is the corpus's alphabet, or a pretrained tokenizer.
    """
    documents = isinstance(task.corpus, OwnDocuments)
    if task.tokenizer is None or task.tokens != "pretrained":
        return TextSymbols(
            kind="characters", content=corpus.alphabet, separated=corpus.pretokenized, documents=documents
        )
    dataset = tokenizer_dataset(task.tokenizer)
    content = read_source(dataset, own_source(task.tokenizer.sha256), dataset_folder(dataset, folder))
    pattern = bytes.fromhex(task.tokenizer.pattern).decode()
    return TextSymbols(kind=task.tokenizer.form, content=content, pattern=pattern, documents=documents)


def _write(corpus: Corpus, task: LanguageModelSettings, folder: Path, place: Path) -> dict[str, Any]:
    data = _splits(corpus, folder)
    lines_kept = task.batching != "sentences"
    if not lines_kept:
        data = {split: sentences_as_lines(text) for split, text in data.items()}
    symbols = _learn_symbols(corpus, task, folder, data["train"])
    files, first_bytes, lossless = {}, {}, {}
    for split, text in data.items():
        encoded = symbols.encode_bytes(text)
        first_bytes[split], lossless[split] = encoded.first_bytes, encoded.lossless and lines_kept
        for name in ("tokens", "lines", "words", "bytes"):
            files[f"{split}.{name}"] = write_numbers(place / f"{split}.{name}", getattr(encoded, name))
    if task.tokens in _LISTS:
        (place / _LISTS[task.tokens]).write_bytes(symbols.content)
    sources = {split: hashlib.sha256(text).hexdigest() for split, text in data.items()}
    return {
        "corpus": corpus.name,
        "tokens": task.tokens,
        "sha256": sources,
        "files": files,
        "first_bytes": first_bytes,
        "lossless": lossless,
    }


def _write_documents(
    documents: OwnDocuments, task: LanguageModelSettings, folder: Path, place: Path
) -> dict[str, Any]:
    corpus, names = documents.dataset, _train_names(documents)
    if task.tokens == "byte_bpe":
        texts = (text for name, text in _iter_documents(documents, folder) if name in names)
        # one of the pieces is the end mark, which the tokenizer does not have
        (place / _LISTS["byte_bpe"]).write_bytes(train_byte_bpe(texts, task.pieces - 1))
    tokenizer = _symbols(corpus, task, folder, place).tokenizer
    mark = np.array([MARK], smallest_dtype(tokenizer.size + 1))
    waiting: dict[str, list[bytes]] = {name: [] for name in (*names, "dev", "test")}
    lossless = dict.fromkeys(waiting, True)
    with ExitStack() as stack:
        writers = {name: stack.enter_context(SplitWriter(place, name, mark, sizes=True)) for name in waiting}

        def write(name: str) -> None:
            *numbers, kept = encode_units(tokenizer, waiting[name])
            writers[name].add(*numbers)
            lossless[name] = lossless[name] and kept
            waiting[name].clear()

        for name, text in _iter_documents(documents, folder):
            waiting[name].append(text.encode())
            if len(waiting[name]) == _DOCUMENTS:
                write(name)
        for name in writers:
            write(name)
    files = {name: about for writer in writers.values() for name, about in writer.about().items()}
    return {"corpus": corpus.name, "tokens": task.tokens, "files": files, "lossless": lossless}


def _iter_documents(documents: OwnDocuments, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the documents of all files, each with the name of its split.

    The files for training come first, one source after another. Raise DataError if a file is missing or has
    changed.
    """
    shares = HeldOutFractions(dev=documents.dev_share, test=documents.test_share)
    sources = zip(_train_names(documents), (each.files for each in documents.sources), strict=True)
    for name, files in (*sources, ("dev", documents.dev), ("test", documents.test)):
        for sha256 in files:
            path = find_own_file(documents.dataset, sha256, folder)
            try:
                for text in iter_documents(path, documents.column):
                    split = shares.split_of(text) if name not in ("dev", "test") else name
                    yield (name if split == "train" else split), text
            except RowsError as error:
                raise DataError(f"{path}: {error}") from error


def _splits(corpus: Corpus, folder: Path) -> dict[str, bytes]:
    files: dict[SourceFile, bytes] = {}
    for part in corpus.splits.values():
        if part.source not in files:
            files[part.source] = read_source(corpus, part.source, dataset_folder(corpus, folder))
    return {name: files[part.source][part.start : part.stop] for name, part in corpus.splits.items()}


def _learn_symbols(corpus: Corpus, task: LanguageModelSettings, folder: Path, train: bytes) -> TextSymbols:
    if task.tokens == "words":
        known = build_vocabulary(train)
        if corpus.own:
            known = limit_vocabulary(known, task.pieces)
        elif len(known) != corpus.word_vocab_size:
            raise DataError(f"{corpus.name}: expected {corpus.word_vocab_size:,} words, got {len(known):,}")
        content = b"\n".join(known) + b"\n"
    elif task.tokens == "bpe":
        from . import subwords  # noqa: PLC0415  as above

        normalise = subwords.lowered if corpus.pretokenized else subwords.separate_punctuation
        content = subwords.train_subwords(train, task.pieces, normalise)
    elif task.tokens == "byte_bpe":
        lines = (line.decode("utf-8", errors="replace") for line in train.split(b"\n"))
        return TextSymbols(kind="json", content=train_byte_bpe(lines, task.pieces - 1))
    else:
        return _known_symbols(corpus, task, folder)
    return TextSymbols(kind=task.tokens, content=content, separated=corpus.pretokenized)
