"""Tasks of sentences: translation, parsing, and labelled sequences of the user."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ...text.strict_model import KnownNames
from ..datasets import ParallelCorpus, Treebank, dataset_names, require_dataset
from ..own_corpora import OwnPairs, OwnSequences, read_facts
from .spec import DEFAULT_PIECES, LINE_TOKENS, ModelInterface, TaskKind, TaskSettings, TaskSpec, add_own_task

SizeChoice = Literal["all", "estimated"]
"""The choice of output sizes to try with models that get the size as an input."""


class SentencePairSettings(TaskSettings, ABC):
    """The keys that translation and parsing share."""

    tokens: Literal["words", "bpe", "spelled", "spelled_digits"]
    """what a token is; spelled: a word, or a letter of a rare one; spelled_digits: the same, with each digit,
    hyphen and other sign as a token of its own"""
    pieces: int = Field(default=DEFAULT_PIECES, ge=300, le=1_000_000)
    """the size of each language's vocabulary"""
    longest: int = Field(default=300, ge=1)
    """longer pairs, in tokens, are left out of the training"""
    dev_tokens: int | None = Field(default=None, ge=2)
    """how many tokens of the dev split are scored after each epoch but the last; all by default"""
    beam: int = Field(default=1, ge=1, le=64)
    """hypotheses that are kept while the test split is written"""
    length_penalty: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """how much longer hypotheses are preferred (Wu et al. 2016, equation 14)"""
    coverage_penalty: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """how much hypotheses that leave out parts of the source are penalised (the same)"""
    size_ratio: float = Field(default=2.0, ge=1, le=16)
    """of models that are told how long an output will be: how many times as long as the source, at most"""
    size_margin: int = Field(default=0, ge=0, le=1000)
    """and how many symbols more"""
    sizes: SizeChoice = "all"
    """of these models, too: all, each size is tried and the likeliest output is kept; estimated, only that is
    tried which a line of least squares through the lengths of the training's pairs gives for the source's"""


class TranslationSettings(SentencePairSettings):
    """`[task]` of translation."""

    corpus: Annotated[
        str | OwnPairs,
        BeforeValidator(read_facts(OwnPairs)),
        KnownNames(lambda: dataset_names(ParallelCorpus)),
    ]
    """the pairs: a corpus by name, or your own files as in `{ path = "my.tsv" }`: `docs/how-to/my-data.md`"""
    joint_vocabulary: bool = False
    """whether both languages have one vocabulary, of the words that are most frequent in both together"""

    @property
    def interface(self) -> ModelInterface:
        """A vocabulary for each language, or the same for both, with embeddings for each.

        If a text has fewer symbols, the rest stay unused, so that sizes depend on the study file alone.
        """
        if isinstance(self.corpus, str):
            require_dataset(self.corpus, ParallelCorpus)
        return _pair_interface(self.pieces, self.pieces)


class ParsingSettings(SentencePairSettings):
    """`[task]` of parsing."""

    corpus: Annotated[str, KnownNames(lambda: dataset_names(Treebank))]
    """the treebank"""
    prefer_trees: bool = False
    """whether of the lengths that are tried one that gives a tag for each word, and each bracket another, is
    better than likelier ones: each tag too many or too few costs 1000 nats, each bracket 100"""

    @property
    def interface(self) -> ModelInterface:
        return _pair_interface(self.pieces, require_dataset(self.corpus, Treebank).tree_vocab_size)


def _pair_interface(source: int, target: int) -> ModelInterface:
    return ModelInterface(kind=TaskKind.TRANSDUCTION, vocab=target, source_vocab=source, tokens=LINE_TOKENS)


add_own_task(
    TaskSpec(
        name="translation",
        kind=TaskKind.TRANSDUCTION,
        summary="a sentence to the same in another language",
        source="Extended Neural GPU, section 3; memory degradation, section 4",
        settings=TranslationSettings,
    )
)
add_own_task(
    TaskSpec(
        name="parsing",
        kind=TaskKind.TRANSDUCTION,
        summary="a sentence to its constituents, in brackets around the tags of its words",
        source="Extended Neural GPU, section 3; Vinyals et al. 2015",
        settings=ParsingSettings,
    )
)


RESERVED_SYMBOLS = 4
"""The numbers of a vocabulary that are no text: padding, start, end and unknown."""

BYTES = 256


class LabelledSettings(TaskSettings, ABC):
    """The keys that tasks with labels share."""

    corpus: Annotated[OwnSequences, BeforeValidator(read_facts(OwnSequences, named=False))]
    """the files, as in `{ path = "my.csv", text = "text", label = "label" }`: `docs/how-to/my-data.md`"""
    longest: int = Field(default=300, ge=1)
    """of longer sequences so many tokens are read"""

    @property
    @abstractmethod
    def vocabulary(self) -> tuple[str, int]:
        """The kind of a token, and the number of symbols."""

    @property
    def interface(self) -> ModelInterface:
        """The symbols of the sequences, and as many classes as there are labels, or a number."""
        kind, classes = self.spec.kind, self.corpus.classes
        return ModelInterface(
            kind=kind,
            vocab=self.vocabulary[1],
            classes=classes,
            targets=1 if classes is None else None,
            tokens=min(LINE_TOKENS, self.longest),
        )

    def normalise(self, sequence: str) -> str:
        """Return the sequence with single spaces where these separate symbols."""
        return " ".join(sequence.split()) if self.vocabulary[0] == "symbols" else sequence


class LabelledSequenceSettings(LabelledSettings):
    """`[task]` of sequence_classification and sequence_regression."""

    tokens: Literal["words", "bpe", "characters", "symbols"]
    """what a token is; words: in lower case, marks apart; characters: bytes; symbols: what stands between
    spaces, or each element of a list"""
    pieces: int = Field(default=DEFAULT_PIECES, ge=300, le=1_000_000)
    """the size of a vocabulary of words or bpe"""

    @property
    def vocabulary(self) -> tuple[str, int]:
        if self.tokens in ("words", "bpe"):
            return self.tokens, self.pieces
        found = BYTES if self.tokens == "characters" else self.corpus.symbols
        return self.tokens, RESERVED_SYMBOLS + found


class TokenClassificationSettings(LabelledSettings):
    """`[task]` of token_classification."""

    @property
    def vocabulary(self) -> tuple[str, int]:
        return "symbols", RESERVED_SYMBOLS + self.corpus.symbols


for _name, _kind, _summary, _settings in (
    (
        "sequence_classification",
        TaskKind.CLASSIFICATION,
        "a sequence of one's own to its class",
        LabelledSequenceSettings,
    ),
    (
        "sequence_regression",
        TaskKind.REGRESSION,
        "a sequence of one's own to a number",
        LabelledSequenceSettings,
    ),
    (
        "token_classification",
        TaskKind.TOKEN_CLASSIFICATION,
        "each token of a sequence of one's own to its class",
        TokenClassificationSettings,
    ),
):
    add_own_task(
        TaskSpec(name=_name, kind=_kind, summary=_summary, source="a table of one's own", settings=_settings)
    )
