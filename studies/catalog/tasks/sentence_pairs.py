"""Translation and parsing: a sentence to a sequence of another length."""

from __future__ import annotations

from abc import ABC
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ...text.strict_model import KnownNames
from ..datasets import ParallelCorpus, Treebank, dataset_names, require_dataset
from ..own_corpora import OwnPairs, read_facts
from .spec import DEFAULT_PIECES, LINE_TOKENS, ModelInterface, TaskKind, TaskSettings, TaskSpec, add_own_task

SizeChoice = Literal["all", "estimated"]
"""Which sizes of outputs are tried with models that are told them."""


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
    """the pairs: the name of a corpus, or files of one's own as in `{ path = "my.tsv" }`: `docs/data.md`"""
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
        """A vocabulary for sentences and one for trees."""
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
