"""A tokenised text corpus in memory-mapped files, which the first process that needs them writes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ....studies.catalog.datasets import Corpus, SourceFile, dataset_code
from ....studies.catalog.own_corpora import OwnDocuments, own_name, own_source, tokenizer_dataset
from ....studies.catalog.tasks import LanguageModelSettings, corpus_of_task
from ....studies.own_data.texts import iter_documents
from ...corpora.files import DataError, dataset_folder, find_own_file, read_source
from ..token_files import (
    Split,
    SplitWriter,
    encoded_folder,
    open_split,
    prepared,
)
from ..vocabularies.build import load_text_vocabulary
from ..vocabularies.pieces import NORMALISATION, TextPieceVocabulary
from ..vocabularies.texts import (
    LineLayout,
    TextVocabulary,
    TextWordVocabulary,
    ensure_final_newline,
)
from ..vocabularies.tokenizers import JsonTokenizer, library_version

FORMAT = 3
"""The version of the files. It grows when their layout or content changes."""

_DOCUMENTS = 1_000  # documents encoded at a time

_LEARNT = {
    "words": ("words", "vocabulary.txt"),
    "bpe": ("bpe", "pieces.model"),
    "byte_bpe": ("json", "tokenizer.json"),
}
"""The vocabulary and its file, for each kind of tokens that is learnt from the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenisedCorpus:
    """A tokenised corpus with its vocabulary.

    Token 0 is the input before the first token of a line, and it is also the padding.

    `sources` are the texts to train on with their weights: one text, or the texts of a mixture.
    """

    vocabulary: TextVocabulary
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
        vocabulary=_vocabulary(corpus, task, folder, place),
        sources=tuple((weight, splits[name]) for name, weight in sources.items()),
        dev=splits["dev"],
        test=splits["test"],
    )


def _train_names(documents: OwnDocuments) -> list[str]:
    """Return the name under which each source of training documents is stored: train, train1, …."""
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
    if dataset_code(corpus.name) is not None:  # a plug-in may change while its files stay the same
        parts_of_files = [[part.start, part.stop] for part in corpus.splits.values()]
        depends.append([corpus.alphabet.hex(), parts_of_files])
    if task.tokens == "bpe":
        depends += [corpus.pretokenized, NORMALISATION]
    if task.tokens == "pretrained" and task.tokenizer is not None:
        depends.append(task.tokenizer.model_dump())
    elif task.tokens == "byte_bpe":
        depends.append(library_version())
    return encoded_folder(folder, parts, depends, pieces=task.tokens == "bpe")


def _vocabulary(corpus: Corpus, task: LanguageModelSettings, folder: Path, place: Path) -> TextVocabulary:
    """Return the vocabulary of a corpus: learnt from it, a pretrained tokenizer, or its alphabet."""
    documents, options = isinstance(task.corpus, OwnDocuments), dict[str, Any]()
    if task.tokens in _LEARNT:
        kind, name = _LEARNT[task.tokens]
        content = (place / name).read_bytes()
    elif task.tokens == "pretrained" and task.tokenizer is not None:
        dataset = tokenizer_dataset(task.tokenizer)
        source = own_source(task.tokenizer.sha256)
        kind, content = task.tokenizer.form, read_source(dataset, source, dataset_folder(dataset, folder))
    else:
        kind, content = "characters", corpus.alphabet
    if kind == "bpe":
        options["separated"] = corpus.pretokenized
    if kind in ("characters", "json", "ranks"):
        options["documents"] = documents
    if kind == "ranks" and task.tokenizer is not None:
        options["pattern"] = bytes.fromhex(task.tokenizer.pattern).decode()
    return load_text_vocabulary(kind, content, **options)


def _write(corpus: Corpus, task: LanguageModelSettings, folder: Path, place: Path) -> dict[str, Any]:
    data = _splits(corpus, folder)
    lines_kept = task.batching != "sentences"
    if not lines_kept:
        data = {split: sentences_as_lines(text) for split, text in data.items()}
    if task.tokens in _LEARNT:
        (place / _LEARNT[task.tokens][1]).write_bytes(_learn(corpus, task, data["train"]).content())
    vocabulary = _vocabulary(corpus, task, folder, place)
    files, first_bytes, lossless = {}, {}, {}
    for split, text in data.items():
        try:
            encoded = vocabulary.encode_bytes(text)
        except DataError as error:
            if not isinstance(task.corpus, str):  # own data have no name that the user knows
                raise
            raise DataError(f"{corpus.name}, {split}: {error}") from error
        first_bytes[split], lossless[split] = encoded.first_bytes, encoded.lossless and lines_kept
        with SplitWriter(place, split, vocabulary.mark, sizes=True) as writer:
            writer.add(encoded.tokens, encoded.lengths, encoded.words, encoded.bytes)
        files |= writer.about()
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
        (place / _LEARNT["byte_bpe"][1]).write_bytes(JsonTokenizer.learn(texts, task.pieces).content())
    vocabulary = _vocabulary(corpus, task, folder, place)
    assert vocabulary.documents, "words and pieces of lines would lose line breaks"
    waiting: dict[str, list[bytes]] = {name: [] for name in (*names, "dev", "test")}
    layouts = {name: LineLayout() for name in waiting}
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(SplitWriter(place, name, vocabulary.mark, sizes=True))
            for name in waiting
        }

        def write(name: str) -> None:
            writers[name].add(*vocabulary.encode_units(waiting[name], layouts[name]))
            waiting[name].clear()

        for name, text in _iter_documents(documents, folder):
            waiting[name].append(text.encode())
            if len(waiting[name]) == _DOCUMENTS:
                write(name)
        for name in writers:
            write(name)
    files = {name: about for writer in writers.values() for name, about in writer.about().items()}
    lossless = {name: layout.kept for name, layout in layouts.items()}
    return {"corpus": corpus.name, "tokens": task.tokens, "files": files, "lossless": lossless}


def _iter_documents(documents: OwnDocuments, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the documents of all files, each with the name of its split; those for training come first."""

    def find(sha256: str) -> Path:
        return find_own_file(documents.dataset, sha256, folder)

    def refuse(message: str) -> None:
        raise DataError(message)

    names = _train_names(documents)
    for place, split, text in iter_documents(documents, find, refuse):
        yield (names[place] if split == "train" else split), text


def _splits(corpus: Corpus, folder: Path) -> dict[str, bytes]:
    files: dict[SourceFile, bytes] = {}
    for part in corpus.splits.values():
        if part.source not in files:
            files[part.source] = read_source(corpus, part.source, dataset_folder(corpus, folder))
    return {name: files[part.source][part.start : part.stop] for name, part in corpus.splits.items()}


def _learn(corpus: Corpus, task: LanguageModelSettings, train: bytes) -> TextVocabulary:
    if task.tokens == "words":
        words = TextWordVocabulary.learn(train, task.pieces if corpus.own else None)
        if not corpus.own and words.size != corpus.word_vocab_size:
            raise DataError(f"{corpus.name}: expected {corpus.word_vocab_size:,} words, got {words.size:,}")
        return words
    if task.tokens == "bpe":
        return TextPieceVocabulary.learn(train, task.pieces, separated=corpus.pretokenized)
    lines = (line.decode("utf-8", errors="replace") for line in train.split(b"\n"))
    return JsonTokenizer.learn(lines, task.pieces)


_SPACES, _END_OF_SENTENCE = re.compile(rb" {2,}"), re.compile(rb" ([.?!]) ")


def sentences_as_lines(data: bytes) -> bytes:
    """Put each sentence of a text on its own line.

    The text has separated punctuation, as WikiText has. A sentence ends at a full stop, a question mark or an
    exclamation mark, not at the end of a line. WikiText-103 has 7,831 sentences for validation and 8,958 for
    the test; the program of the first paper counts 7,832 and 8,985 (WT3/feeder.py).
    """
    text = _SPACES.sub(b" ", data.replace(b"\n", b" ")).strip()
    return ensure_final_newline(_END_OF_SENTENCE.sub(rb" \1\n", text))
