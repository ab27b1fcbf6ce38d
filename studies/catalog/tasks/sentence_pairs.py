"""Tasks on sentences: translation, parsing, and the user's labelled sequences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ....grammar.model_config import ModelInterface
from ...text.strict_model import KnownNames
from ..datasets import ParallelCorpus, Treebank, dataset_names, require_dataset
from ..own_corpora import NamedFiles, OwnPairs, OwnSequences, read_facts
from .spec import DEFAULT_PIECES, LINE_TOKENS, TaskInterface, TaskKind, TaskSettings, TaskSpec, add_own_task

SizeChoice = Literal["all", "estimated"]
"""The output sizes to try for models that need the size as an input."""


class SentencePairSettings(TaskSettings, ABC):
    """Keys of `[task]` that the tasks translation and parsing share."""

    tokens: Literal["words", "bpe", "spelled", "spelled_digits"]
    """the kind of token; words: lower case, with separated punctuation; spelled: frequent words, and letters
    for other words; spelled_digits: the same, with each digit, hyphen and other sign as a token"""
    pieces: int = Field(default=DEFAULT_PIECES, ge=300, le=1_000_000)
    """the vocabulary size of each language"""
    longest: int = Field(default=300, ge=1)
    """the maximum number of tokens; longer pairs are left out of the training"""
    dev_tokens: int | None = Field(default=None, ge=2)
    """the number of dev tokens that are scored after each epoch but the last (default: all)"""
    beam: int = Field(default=1, ge=1, le=64)
    """the beam size with which the outputs of the test split are written"""
    length_penalty: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """the strength of the preference for longer outputs (Wu et al. 2016, equation 14)"""
    coverage_penalty: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """the strength of the penalty for outputs that leave out parts of the source (Wu et al. 2016, equation
    14)"""
    size_ratio: float = Field(default=2.0, ge=1, le=16)
    """for models that need the output length in advance: the longest output, as a multiple of the source's
    length"""
    size_margin: int = Field(default=0, ge=0, le=1000)
    """for these models: how many symbols longer than `size_ratio` times the source an output may be"""
    sizes: SizeChoice = "all"
    """for these models: "all" tries each length and keeps the most likely output; "estimated" tries only the
    length that a linear fit to the training pairs predicts from the source's length"""

    @property
    def longest_row(self) -> int:
        return self.longest + 1  # with the end

    def epoch_scores(self, *, grows: bool) -> tuple[str, ...]:
        return ("dev_loss", "dev_perplexity", "dev_accuracy", "dev_bits_per_byte")

    def end_scores(self, tested: tuple[str, ...]) -> tuple[str, ...]:
        return (*tested, "bleu", "test_exact")


class TranslationSettings(SentencePairSettings):
    """Keys of `[task]` for the task translation."""

    corpus: Annotated[
        str | OwnPairs,
        BeforeValidator(read_facts(OwnPairs), json_schema_input_type=NamedFiles),
        KnownNames(lambda: dataset_names(ParallelCorpus)),
    ]
    """the pairs: a corpus by name, or your own files as in `{ path = "my.tsv" }`; see
    `docs/how-to/my-data.md`"""
    joint_vocabulary: bool = False
    """whether both languages share one vocabulary, with the most frequent words of both together"""

    @property
    def interface(self) -> TaskInterface:
        """The requirements on a model: an embedding table with `pieces` symbols for each language.

        If a text has fewer symbols, the rest stay unused, so that sizes depend only on the study file.
        """
        if isinstance(self.corpus, str):
            require_dataset(self.corpus, ParallelCorpus)
        return _pair_interface(self.pieces, self.pieces)


class ParsingSettings(SentencePairSettings):
    """Keys of `[task]` for the task parsing, which converts sentences to trees."""

    corpus: Annotated[str, KnownNames(lambda: dataset_names(Treebank))]
    """the treebank"""
    prefer_trees: bool = False
    """whether, among the lengths that are tried, well-formed trees are preferred to more likely outputs: each
    surplus or missing tag costs 1000 nats, each unmatched bracket 100"""

    @property
    def interface(self) -> TaskInterface:
        return _pair_interface(self.pieces, require_dataset(self.corpus, Treebank).tree_vocab_size)

    def end_scores(self, tested: tuple[str, ...]) -> tuple[str, ...]:
        return (*tested, "f1", "f1_of_all", "precision", "recall", "tree_share")


def _pair_interface(source: int, target: int) -> TaskInterface:
    return TaskInterface(model=ModelInterface(vocab=target, source_vocab=source), tokens=LINE_TOKENS)


add_own_task(
    TaskSpec(
        name="translation",
        kind=TaskKind.TRANSDUCTION,
        summary="translate a sentence",
        source="Extended Neural GPU, section 3; memory degradation, section 4",
        settings=TranslationSettings,
    )
)
add_own_task(
    TaskSpec(
        name="parsing",
        kind=TaskKind.TRANSDUCTION,
        summary="parse a sentence: write its constituents as brackets around the tags of its words",
        source="Extended Neural GPU, section 3; Vinyals et al. 2015",
        settings=ParsingSettings,
    )
)


RESERVED_SYMBOLS = 4
"""The number of special symbols in a vocabulary: padding, start, end and unknown."""

BYTES = 256


class LabelledSettings(TaskSettings, ABC):
    """Keys of `[task]` that all tasks on the user's labelled sequences share."""

    corpus: Annotated[
        OwnSequences,
        BeforeValidator(read_facts(OwnSequences, named=False), json_schema_input_type=NamedFiles),
    ]
    """the files, as in `{ path = "my.csv", text = "text", label = "label" }`; see `docs/how-to/my-data.md`"""
    longest: int = Field(default=300, ge=1)
    """the maximum number of tokens that are read of a sequence"""

    @property
    def longest_row(self) -> int:
        return self.longest

    @property
    @abstractmethod
    def vocabulary(self) -> tuple[str, int]:
        """The word for tokens, such as "symbols", and the number of different tokens."""

    @property
    def interface(self) -> TaskInterface:
        """The requirements on a model: the number of input symbols, and the kind of output.

        The output is one of `classes`; without classes, it is a single number.
        """
        classes = self.corpus.classes
        targets = 1 if classes is None else None
        model = ModelInterface(vocab=self.vocabulary[1], classes=classes, targets=targets)
        return TaskInterface(model=model, tokens=min(LINE_TOKENS, self.longest))

    def epoch_scores(self, *, grows: bool) -> tuple[str, ...]:
        classes = ("dev_loss", "dev_accuracy", "dev_macro_f1", "dev_ece")
        return ("dev_loss", "dev_mae") if self.corpus.classes is None else classes

    def guessed_value(self, metric: str, test_set: str = "") -> float | None:
        """Return the R² of the mean, and the largest macro F1 of the largest class or of random ones."""
        if metric in ("dev_r2", "test_r2"):
            return 0.0
        is_f1 = metric in ("dev_macro_f1", "test_macro_f1") and self.corpus.classes
        return 1 / self.corpus.classes if is_f1 and self.corpus.classes else None

    def end_scores(self, tested: tuple[str, ...]) -> tuple[str, ...]:
        return (*tested, "dev_r2", "test_r2") if self.corpus.classes is None else tested

    def normalise(self, sequence: str) -> str:
        """Shorten runs of spaces between symbols to one; texts with other tokens are returned unchanged."""
        return " ".join(sequence.split()) if self.vocabulary[0] == "symbols" else sequence


class LabelledSequenceSettings(LabelledSettings):
    """Keys of `[task]` for the tasks sequence_classification and sequence_regression."""

    tokens: Literal["words", "bpe", "characters", "symbols"]
    """the kind of token; words: lower case, with separated punctuation; characters: bytes; symbols: separated
    by spaces, or the elements of a list"""
    pieces: int = Field(default=DEFAULT_PIECES, ge=300, le=1_000_000)
    """the vocabulary size of words or bpe"""

    @property
    def vocabulary(self) -> tuple[str, int]:
        if self.tokens in ("words", "bpe"):
            return self.tokens, self.pieces
        found = BYTES if self.tokens == "characters" else self.corpus.symbols
        return self.tokens, RESERVED_SYMBOLS + found


class TokenClassificationSettings(LabelledSettings):
    """Keys of `[task]` for the task token_classification."""

    @property
    def vocabulary(self) -> tuple[str, int]:
        return "symbols", RESERVED_SYMBOLS + self.corpus.symbols


for _name, _kind, _summary, _settings in (
    (
        "sequence_classification",
        TaskKind.CLASSIFICATION,
        "classify sequences of your own",
        LabelledSequenceSettings,
    ),
    (
        "sequence_regression",
        TaskKind.REGRESSION,
        "predict a number for each sequence of your own",
        LabelledSequenceSettings,
    ),
    (
        "token_classification",
        TaskKind.TOKEN_CLASSIFICATION,
        "classify each token of sequences of your own",
        TokenClassificationSettings,
    ),
):
    add_own_task(
        TaskSpec(name=_name, kind=_kind, summary=_summary, source="your own table", settings=_settings)
    )
