"""A tokenised text corpus in memory-mapped files; the first process that needs the files writes them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ....studies.catalog.datasets import Corpus, SourceFile
from ....studies.catalog.own_corpora import own_source, tokenizer_dataset
from ....studies.catalog.tasks import LanguageModelSettings, corpus_of_task, vocabulary_size
from ...corpora.files import DataError, dataset_folder, read_source
from ..token_files import Split, encoded_folder, open_split, prepared
from .file_tokenizers import library_version, train_byte_bpe
from .symbols import TextSymbols
from .tokenization import build_vocabulary, limit_vocabulary, sentences_as_lines

FORMAT = 3
"""The version of the files, raised when their layout or content changes."""

_LISTS = {"words": "vocabulary.txt", "bpe": "pieces.model", "byte_bpe": "tokenizer.json"}
"""Files that list learnt tokens; the others are known without the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenisedCorpus:
    """A tokenised corpus with its vocabulary; token 0 begins and pads a line."""

    vocab: int
    symbols: TextSymbols
    train: Split
    dev: Split
    test: Split


def open_corpus(task: LanguageModelSettings, folder: Path) -> TokenisedCorpus:
    """Open the text of a `[task]` table, from the folder of all data.

    The first call writes its tokens below `encoded/`; several processes may call it at once. Raise
    CorpusError for a wrong table, and DataError if the text is missing or differs from the published one.
    """
    corpus, vocab = corpus_of_task(task), vocabulary_size(task)
    place = place_of_corpus(task, folder)
    about = prepared(place, corpus.name, partial(_write, corpus, task, folder))
    splits: dict[str, Split] = {}
    for name in corpus.splits:
        split = replace(open_split(place, name, about["files"]), first_bytes=about["first_bytes"][name])
        splits[name] = split if about["lossless"][name] else replace(split, line_bytes=None)
    return TokenisedCorpus(vocab=vocab, symbols=_symbols(corpus, task, folder, place), **splits)


def place_of_corpus(task: LanguageModelSettings, folder: Path) -> Path:
    """Return the folder of the tokens, which may not exist yet."""
    corpus = corpus_of_task(task)
    sized = task.tokens in ("bpe", "byte_bpe") or (task.tokens == "words" and corpus.own)
    parts = [corpus.name, task.tokens, *([str(task.pieces)] if sized else [])]
    parts += ["sentences"] if task.batching == "sentences" else []
    sources = [[part.source.size, part.source.digest] for part in corpus.splits.values()]
    depends: list[Any] = [FORMAT, parts, sources]
    if task.tokens == "bpe":
        from . import subwords  # noqa: PLC0415  not every machine that reads characters needs the library

        depends += [corpus.pretokenized, subwords.NORMALISATION]
    if task.tokens == "pretrained" and task.tokenizer is not None:
        depends.append(task.tokenizer.model_dump())
    elif task.tokens == "byte_bpe":
        depends.append(library_version())
    return encoded_folder(folder, parts, depends, pieces=task.tokens == "bpe")


def _symbols(corpus: Corpus, task: LanguageModelSettings, folder: Path, place: Path) -> TextSymbols:
    """Return the symbols of a prepared text."""
    if task.tokens in _LISTS:
        content = (place / _LISTS[task.tokens]).read_bytes()
        kind = "json" if task.tokens == "byte_bpe" else task.tokens
        return TextSymbols(kind=kind, content=content, separated=corpus.pretokenized)
    return _known_symbols(corpus, task, folder)


def _known_symbols(corpus: Corpus, task: LanguageModelSettings, folder: Path) -> TextSymbols:
    """Return symbols that need no text to learn from."""
    if task.tokenizer is None or task.tokens != "pretrained":
        return TextSymbols(kind="characters", content=corpus.alphabet, separated=corpus.pretokenized)
    dataset = tokenizer_dataset(task.tokenizer)
    content = read_source(dataset, own_source(task.tokenizer.sha256), dataset_folder(dataset, folder))
    pattern = bytes.fromhex(task.tokenizer.pattern).decode()
    return TextSymbols(kind=task.tokenizer.form, content=content, pattern=pattern)


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
            numbers = getattr(encoded, name)
            files[f"{split}.{name}"] = {"dtype": numbers.dtype.str[1:], "size": len(numbers)}
            (place / f"{split}.{name}").write_bytes(numbers.tobytes())
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


def _splits(corpus: Corpus, folder: Path) -> dict[str, bytes]:
    """Return the bytes of each split; a file with several splits is read once."""
    files: dict[SourceFile, bytes] = {}
    for part in corpus.splits.values():
        if part.source not in files:
            files[part.source] = read_source(corpus, part.source, dataset_folder(corpus, folder))
    return {name: files[part.source][part.start : part.stop] for name, part in corpus.splits.items()}


def _learn_symbols(corpus: Corpus, task: LanguageModelSettings, folder: Path, train: bytes) -> TextSymbols:
    """Return the symbols of a text: known ones, or symbols learnt from its training split."""
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
