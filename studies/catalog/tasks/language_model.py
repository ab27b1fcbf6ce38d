"""Language modelling, each token of a text from those before it, and the tokens of texts."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ...text.strict_model import KnownNames
from ..datasets import Corpus, CorpusError, dataset_names, require_dataset
from ..own_corpora import OwnText, read_facts
from .spec import DEFAULT_PIECES, LINE_TOKENS, ModelInterface, TaskKind, TaskSettings, TaskSpec, add_own_task

UNBOUNDED_PAST = 1 << 30
"""More past positions than any block keeps: a stream that has run for long."""


_WORD = re.compile(r"\w+|[^\w\s]")


def split_words(sentence: str) -> list[str]:
    """Return the words of a sentence in lower case, with each mark as a word of its own."""
    return _WORD.findall(sentence.lower())


class LanguageModelSettings(TaskSettings):
    """`[task]` of language_model."""

    corpus: Annotated[
        str | OwnText, BeforeValidator(read_facts(OwnText)), KnownNames(lambda: dataset_names(Corpus))
    ]
    """the text: a corpus by name, or your own files as in `{ path = "my.txt" }`: `docs/how-to/my-data.md`"""
    tokens: Literal["characters", "words", "bpe"] = "characters"
    """what a token is"""
    pieces: int = Field(default=DEFAULT_PIECES, ge=300, le=1_000_000)
    """the size of a bpe vocabulary, and of one of words where the text is one's own"""
    batching: Literal["stream", "lines", "sentences"] = "stream"
    """one endless text in each row of a batch, or one line or one sentence of it"""
    context: int = Field(default=512, ge=1, serialization_alias="block")
    """in streams: how many tokens are read at a time"""
    random_offset: bool = False
    """in streams: whether each pass but the first begins anywhere in the first `context` tokens"""
    longest: int = Field(default=300, ge=1)
    """of lines and sentences: longer ones, in tokens, are left out of the training"""
    dev_tokens: int | None = Field(default=None, ge=2)
    """how many tokens of the dev split are scored after each epoch but the last; all by default"""

    @property
    def interface(self) -> ModelInterface:
        tokens, past = (self.context, UNBOUNDED_PAST) if self.batching == "stream" else (LINE_TOKENS, 0)
        return ModelInterface(kind=TaskKind.LANGUAGE, vocab=vocabulary_size(self), tokens=tokens, past=past)


def corpus_of_task(task: LanguageModelSettings) -> Corpus:
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


def vocabulary_size(task: LanguageModelSettings) -> int:
    """Return the number of symbols of a `[task]` table's text, with the end-of-line mark.

    Raises CorpusError if the table names no known text.
    """
    corpus = corpus_of_task(task)
    if task.tokens == "characters":
        return len(corpus.alphabet) + 1
    return corpus.word_vocab_size if task.tokens == "words" and corpus.word_vocab_size else task.pieces


add_own_task(
    TaskSpec(
        name="language_model",
        kind=TaskKind.LANGUAGE,
        summary="each token of a text from those before it",
        source="Active memory in a Transformer, section 4.1; all-attention, section 4",
        settings=LanguageModelSettings,
    )
)
