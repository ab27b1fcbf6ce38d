"""Language modelling: predict each token of a text from the tokens before it."""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from functools import cache
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ....grammar.model_config import ModelInterface
from ...text.strict_model import KnownNames
from ..datasets import Corpus, CorpusError, dataset_names, require_dataset
from ..own_corpora import NamedFiles, OwnDocuments, OwnText, OwnTokenizer, read_facts
from .spec import (
    DEFAULT_PIECES,
    LINE_TOKENS,
    TaskError,
    TaskInterface,
    TaskKind,
    TaskSettings,
    TaskSpec,
    add_own_task,
)

UNBOUNDED_PAST = 1 << 30
"""Stands for an unbounded past: more positions than any block keeps."""


@cache
def combining_marks() -> str:
    """Return the signs that may follow a letter within a word, as ranges for a class of a regular expression.

    These are vowel signs, accents after their letter, and joiners; `re` does not count them to `\\w`.
    """
    categories = map(unicodedata.category, map(chr, range(sys.maxunicode + 1)))
    marks = [number for number, category in enumerate(categories) if category[0] == "M"]
    known = set(marks)
    starts, ends = ([each for each in marks if each + step not in known] for step in (-1, 1))
    ranges = (f"{chr(low)}-{chr(high)}" for low, high in zip(starts, ends, strict=True))
    return "".join((r"\u200c\u200d", *ranges))


@cache
def word_pattern(*, ascii_only: bool) -> re.Pattern[str]:
    """Return the pattern of a word or of a single sign, in a text that is ASCII or not."""
    return re.compile(r"\w+|[^\w\s]" if ascii_only else rf"\w+(?:[{combining_marks()}]+\w*)*|[^\w\s]")


def split_words(sentence: str) -> list[str]:
    """Split a sentence into lower-case words, with each punctuation mark as a word."""
    return word_pattern(ascii_only=sentence.isascii()).findall(sentence.lower())


class LanguageModelSettings(TaskSettings):
    """Keys of `[task]` for the task language_model."""

    corpus: Annotated[
        str | OwnText | OwnDocuments,
        BeforeValidator(read_facts(OwnText, OwnDocuments), json_schema_input_type=NamedFiles),
        KnownNames(lambda: dataset_names(Corpus)),
    ]
    """the text: a corpus by name, or your own files as in `{ path = "my.txt" }`; see `docs/how-to/my-data.md`
    """
    tokens: Literal["characters", "words", "bpe", "byte_bpe", "pretrained"] = "characters"
    """the kind of token; `docs/reference/data.md` describes them"""
    pieces: int = Field(default=DEFAULT_PIECES, ge=300, le=1_000_000)
    """the vocabulary size of bpe and byte_bpe, and of words in your own text"""
    tokenizer: Annotated[
        OwnTokenizer | None,
        BeforeValidator(read_facts(OwnTokenizer, named=False), json_schema_input_type=NamedFiles | None),
    ] = None
    """for pretrained tokens: a file, as in `"tokenizer.json"` or `{ path = "my.tiktoken", pattern = '…' }`"""
    batching: Literal["stream", "packed", "lines", "sentences"] = "stream"
    """what a row of a batch is: one endless text, a piece of `context` tokens, or a line (a document,
    if the corpus has documents) or a sentence"""
    context: int = Field(default=512, ge=1, le=1 << 20, serialization_alias="block")
    """for streams and packed rows: the number of tokens that are read at a time"""
    separate_documents: bool = False
    """for packed rows: whether a token sees only its own document; see `docs/reference/data.md`"""
    random_offset: bool = False
    """for streams: whether each pass after the first starts at a random offset within the first `context`
    tokens"""
    longest: int = Field(default=300, ge=1)
    """for lines and sentences: the maximum number of tokens; longer ones are left out, in dev and test too"""
    dev_tokens: int | None = Field(default=None, ge=2)
    """the number of dev tokens that are scored after each epoch but the last (default: all)"""

    @property
    def by_line(self) -> bool:
        """True if each row of a batch is a whole line, sentence or document, not a fixed number of tokens."""
        return self.batching in ("lines", "sentences")

    @property
    def longest_row(self) -> int | None:
        return self.longest if self.by_line else None

    @property
    def interface(self) -> TaskInterface:
        tokens = LINE_TOKENS if self.by_line else self.context
        past = UNBOUNDED_PAST if self.batching == "stream" else 0
        model = ModelInterface(vocab=vocabulary_size(self), causal=True)
        return TaskInterface(model=model, tokens=tokens, past=past)

    def guessed_value(self, metric: str, test_set: str = "") -> float | None:
        """Return the entropy of single characters, in the unit of the metric; None for other tokens."""
        named = require_dataset(self.corpus, Corpus) if isinstance(self.corpus, str) else None
        if named is None or named.unigram_bits is None or self.tokens != "characters":
            return None
        units = {"loss": math.log(2), "bpc": 1.0, "bits_per_byte": 1.0}
        unit = units.get(metric.removeprefix("dev_").removeprefix("test_"))
        return None if unit is None else unit * named.unigram_bits

    def epoch_scores(self, *, grows: bool) -> tuple[str, ...]:
        words = ("dev_perplexity", "dev_perplexity_without_ends")
        scores = ("dev_bpc",) if self.tokens == "characters" else words
        return ("dev_loss", "dev_bits_per_byte", *scores, *(("dev_loss_padded",) if self.by_line else ()))


def corpus_of_task(task: LanguageModelSettings) -> Corpus:
    """Return the corpus that a language model's `[task]` names.

    Raise CorpusError if the corpus is unknown or does not support the tokens.
    """
    named = task.corpus
    corpus = require_dataset(named, Corpus) if isinstance(named, str) else named.dataset
    if isinstance(named, OwnDocuments):
        if task.tokens in ("words", "bpe"):
            raise CorpusError(
                f'tokens = "{task.tokens}" would lose the line breaks of documents: use "characters", '
                '"byte_bpe" or "pretrained"'
            )
        if len(named.sources) > 1 and task.batching != "packed":
            raise CorpusError('a mixture of documents has no fixed order: set batching = "packed"')
    if task.tokens == "words" and corpus.word_vocab_size is None and not corpus.own:
        raise CorpusError(
            f'tokens = "words" needs a standard vocabulary, but {corpus.name} has none: use "characters" '
            'or "bpe"'
        )
    if task.batching == "sentences" and not corpus.pretokenized:
        text = "this corpus" if corpus.own else corpus.name
        raise CorpusError(
            f'batching = "sentences" needs a space before each mark that ends a sentence, and {text} has '
            'none: use "stream" or "lines"'
        )
    return corpus


def vocabulary_size(task: LanguageModelSettings) -> int:
    """Return the vocabulary size of a language model, including the end-of-line mark.

    Raise CorpusError if `[task]` names no known text, and TaskError if it lacks a tokenizer that the text
    needs.
    """
    corpus = corpus_of_task(task)
    if task.tokens == "characters":
        return len(corpus.alphabet) + 1
    if task.tokens == "pretrained":
        if task.tokenizer is None:
            raise TaskError('pretrained tokens need the file of a tokenizer: tokenizer = "tokenizer.json"')
        return task.tokenizer.size + 1
    return corpus.word_vocab_size if task.tokens == "words" and corpus.word_vocab_size else task.pieces


add_own_task(
    TaskSpec(
        name="language_model",
        kind=TaskKind.LANGUAGE,
        summary="predict each token of a text from the tokens before it",
        source="Active memory in a Transformer, section 4.1; all-attention, section 4",
        settings=LanguageModelSettings,
    )
)
