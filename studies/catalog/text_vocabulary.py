"""Into which tokens a study cuts a text, and how many there are."""

from __future__ import annotations

import re
from typing import Protocol

from .datasets import Corpus, CorpusError, require_dataset
from .own_corpora import OwnText

_WORD = re.compile(r"\w+|[^\w\s]")


def split_words(sentence: str) -> list[str]:
    """Return the words of a sentence in lower case, with each mark as a word of its own."""
    return _WORD.findall(sentence.lower())


class TextSettings(Protocol):
    """The keys of a `[task]` table that say into which tokens a text is cut."""

    @property
    def corpus(self) -> str | OwnText:
        """The name of a corpus, or a text of the user."""
        ...

    @property
    def tokens(self) -> str:
        """The kind of a token: characters, words or bpe."""
        ...

    @property
    def pieces(self) -> int:
        """The size of the vocabulary with bpe, and with words of a text of the user."""
        ...

    @property
    def batching(self) -> str:
        """The kind of a sequence: stream, lines or sentences."""
        ...


def corpus_of_task(task: TextSettings) -> Corpus:
    """Return the corpus that a `[task]` table names.

    Raises CorpusError if it is unknown or cannot be cut so.
    """
    named = task.corpus
    corpus = named.dataset if isinstance(named, OwnText) else require_dataset(named, Corpus)
    if task.tokens == "words" and corpus.word_vocab_size is None and not corpus.own:
        raise CorpusError(f"{corpus.name} has no standard vocabulary of words; expected characters or bpe")
    if task.batching == "sentences" and not corpus.pretokenized:
        raise CorpusError(
            f"{corpus.name} has no punctuation of its own to end sentences; expected stream or lines"
        )
    return corpus


def vocabulary_size(task: TextSettings) -> int:
    """Return the number of symbols of a `[task]` table's text, with the end-of-line mark.

    Raises CorpusError if the table names no known text.
    """
    corpus = corpus_of_task(task)
    if task.tokens == "characters":
        return len(corpus.alphabet) + 1
    return corpus.word_vocab_size if task.tokens == "words" and corpus.word_vocab_size else task.pieces
