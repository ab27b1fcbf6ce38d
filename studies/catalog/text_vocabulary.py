"""Into which tokens a study cuts a text, and how many there are."""

from __future__ import annotations

from typing import Protocol

from .datasets import Corpus, CorpusError
from .registry import require_dataset


class TextSettings(Protocol):
    """The keys of a `[task]` table that say into which tokens a text is cut."""

    @property
    def corpus(self) -> str:
        """The name of a corpus."""
        ...

    @property
    def tokens(self) -> str:
        """What a token is: characters, words or bpe."""
        ...

    @property
    def pieces(self) -> int:
        """With bpe, the size of the vocabulary."""
        ...

    @property
    def batching(self) -> str:
        """What a sequence is: stream, lines or sentences."""
        ...


def corpus_of_task(task: TextSettings) -> Corpus:
    """The corpus that a `[task]` table names; CorpusError if there is none or it cannot be cut so."""
    corpus = require_dataset(task.corpus, Corpus)
    if task.tokens == "words" and corpus.word_vocab_size is None:
        raise CorpusError(f"{corpus.name} has no standard vocabulary of words; expected characters or bpe")
    if task.batching == "sentences" and not corpus.pretokenized:
        raise CorpusError(
            f"{corpus.name} has no punctuation of its own to end sentences; expected stream or lines"
        )
    return corpus


def vocabulary_size(task: TextSettings) -> int:
    """The number of symbols of a `[task]` table's text, including the end-of-line mark.

    Raises CorpusError if the table names no known text.
    """
    corpus = corpus_of_task(task)
    if task.tokens == "words":
        assert corpus.word_vocab_size is not None
        return corpus.word_vocab_size
    return task.pieces if task.tokens == "bpe" else len(corpus.alphabet) + 1
