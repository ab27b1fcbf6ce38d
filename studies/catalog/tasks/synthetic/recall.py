"""Recall tasks: the token after a key, a trigger or a marker must be repeated later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from .....grammar.vocabulary.spec import Reach
from ..generated import TaskSizes
from .base import Lengths, LengthTask, SyntheticTask, add_synthetic

Size = Annotated[int, Field(ge=1, le=1 << 20)]
TestShape = Annotated[tuple[Size, Size], Field(strict=False)]
"""A length and its number of pairs."""

Shape = Annotated[tuple[Size, Size, Size], Field(strict=False)]
"""A length, its number of pairs, and a sampling weight."""

ASK, MARK, FIRST_DIGIT, FIRST_WORD, WORDS = 1, 2, 3, 13, 24
"""The symbols of needle: the question, the marker before the digits, the first digit, the first word, and the
number of words."""

DIGITS, DEPTHS = 5, (0, 25, 50, 75, 100)
"""The number of digits that needle hides, and their positions in test sets, from 0 (the beginning of a text)
to 100 (directly before the question). In training the position is random."""

GAP_EXPONENT = -0.99
"""The exponent of gaps before the queries of mqar: a gap of g has a probability proportional to its power."""

TRIGGER = 1
"""The trigger of induction_heads; the numbers of the other symbols follow it."""


class MqarSettings(SyntheticTask):
    """Keys of `[task]` for mqar: recall the values of several keys.

    A sequence has key-value pairs, and later each key again as a query for its value.
    """

    vocab: int = Field(default=8192, ge=4, le=1_000_000)
    """the number of symbols: 0, then keys up to half of them, then values"""
    length: int = Field(default=64, ge=4, le=1 << 20)
    """the number of tokens of a sequence"""
    pairs: int = Field(default=4, ge=1)
    """the number of pairs of a sequence"""
    mixture: Annotated[tuple[Shape, ...], Field(strict=False)] = ()
    """several lengths instead of one, each with its pairs and a sampling weight, as in `[[64, 4, 100], [128,
    8, 20]]`; shorter sequences are padded with 0"""
    tests: Annotated[tuple[TestShape, ...], Field(strict=False)] = ()
    """lengths and pairs of the test sets, as in `[[64, 4], [128, 8]]` (default: as in training)"""

    @model_validator(mode="after")
    def _check_pairs(self) -> MqarSettings:
        sizes = {
            "pairs": [(self.length, self.pairs)],
            "mixture": [(length, pairs) for length, pairs, _ in self.mixture],
            "tests": list(self.tests),
        }
        for key, shapes in sizes.items():
            for length, pairs in shapes:
                most = min(length // 4, self.vocab // 2 - 1)
                if length % 2:
                    raise ValueError(f"{key}: expected an even length, got {length}")
                if pairs > most:
                    sizes_text = f"{length} tokens with a vocabulary of {self.vocab}"
                    raise ValueError(f"{key}: expected at most {most} pairs in {sizes_text}, got {pairs}")
        return self

    @property
    def shapes(self) -> tuple[tuple[int, int, int], ...]:
        """The training lengths, each with its number of key-value pairs and its sampling weight."""
        return self.mixture or ((self.length, self.pairs, 1),)

    @property
    def test_names(self) -> tuple[str, ...]:
        tests = self.tests or tuple((length, pairs) for length, pairs, _ in self.shapes)
        return tuple(dict.fromkeys(f"{length}-{pairs}" for length, pairs in tests))

    @property
    def chance(self) -> float:
        """Return the accuracy of a model that answers with a random value of the sequence."""
        return _mean_chance((pairs, weight) for _, pairs, weight in self.shapes)

    def chance_in_test(self, name: str = "") -> float:
        names = [name] if name else self.test_names
        return _mean_chance((int(each.rpartition("-")[2]), 1) for each in names)

    @property
    def sizes(self) -> TaskSizes:
        """The task's sizes; the vocabulary is keys and values."""
        return TaskSizes(tokens=max(length for length, _, _ in self.shapes), vocab=self.vocab)

    @property
    def most_tokens(self) -> int:
        return max(self.sizes.tokens, *(length for length, _ in self.tests), 0)

    @property
    def has_one_shape(self) -> bool:
        return len(self.shapes) == 1

    @property
    def required_reach(self) -> Reach:
        return Reach(left=self.sizes.tokens - 2, right=0)


def _mean_chance(shapes: Iterable[tuple[int, int]]) -> float:
    """Return the share of queries that a guess gets right; each shape has pairs and a number of sequences."""
    queries, right = 0, 0
    for pairs, sequences in shapes:
        queries, right = queries + pairs * sequences, right + sequences
    return right / queries


class InductionSettings(LengthTask):
    """Keys of `[task]` for induction_heads: predict the symbol that followed an earlier trigger."""

    shortest: ClassVar = 3
    lengths: Lengths = (256, 256)
    """the shortest and the longest training sequence; all lengths between are equally frequent"""
    vocab: int = Field(default=16, ge=2, le=1_000_000)
    """the number of symbols besides the trigger"""

    @property
    def chance(self) -> float:
        return 1 / self.vocab

    @property
    def sizes(self) -> TaskSizes:
        """The task's sizes. The vocabulary is padding, the trigger, and the symbols."""
        return TaskSizes(tokens=self.longest_input, vocab=self.vocab + 2)


class NeedleSettings(LengthTask):
    """Keys of `[task]` for needle: repeat, at the end of a text, the digits hidden in it."""

    lengths: Lengths = (64, 256)
    """the shortest and the longest training sequence; all lengths between are equally frequent"""

    def length_fault(self, length: int) -> str | None:
        least = 2 * DIGITS + 1
        return None if length >= least else f"expected lengths of at least {least} with {DIGITS} digits"

    @property
    def test_names(self) -> tuple[str, ...]:
        return tuple(f"{length}-{depth}" for length in self.test_lengths for depth in DEPTHS)

    @property
    def chance(self) -> float:
        return 1 / 10

    @property
    def sizes(self) -> TaskSizes:
        """The task's sizes. The vocabulary is padding, ten digits, the marker, the question, and words."""
        return TaskSizes(tokens=self.longest_input, vocab=FIRST_WORD + WORDS)


add_synthetic(
    "mqar",
    MqarSettings,
    "after pairs of keys and values, each key occurs again: recall its value",
    "Arora et al. 2024 (Zoology), section 4: multi-query associative recall with random_non_queries=False",
    "Length and pairs",
    symbols="keys are below half of vocab, values above; 0 is filler",
)
add_synthetic(
    "induction_heads",
    InductionSettings,
    "when the trigger occurs again, recall the symbol that followed it",
    "Olsson et al. 2022; Gu and Dao 2023 (Mamba), section 4.1",
    "Length",
    symbols="1 is the trigger; the others are from 2 on",
)
add_synthetic(
    "needle",
    NeedleSettings,
    "recall digits that are hidden in a text, at its end",
    "Mohtashami and Jaggi 2023 (Landmark Attention), section 4.2: passkey retrieval",
    "Length and depth",
    symbols="2 comes before the hidden digits, 1 asks for them; 3 to 12 are the digits 0 to 9, others words",
)
