"""Tasks of recall: what stood behind a key, a trigger or a marker is asked again later."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .....grammar.vocabulary.spec import Reach
from ..generated import TaskSizes
from .base import LengthTask, SyntheticTask, add_synthetic

Size = Annotated[int, Field(ge=1, le=1 << 20)]
TestShape = Annotated[tuple[Size, Size], Field(strict=False)]
"""A length and its pairs."""

Shape = Annotated[tuple[Size, Size, Size], Field(strict=False)]
"""A length, its pairs, and a weight."""

Depth = Annotated[float, Field(ge=0, le=1)]
"""A place in a text, as a share of it."""

ASK, MARK, FIRST_DIGIT, FIRST_WORD, WORDS = 1, 2, 3, 13, 24
"""The symbols of needle: the question, the marker before the digits, digits, words and their number."""

TRIGGER = 1
"""The trigger of induction_heads; symbols follow."""


class MqarSettings(SyntheticTask):
    """`[task]` of mqar: pairs of a key and a value, then each key once more, to its value."""

    vocab: int = Field(default=8192, ge=4, le=1_000_000)
    """how many symbols there are: 0, as many keys as are below half, and values"""
    length: int = Field(default=64, ge=4, le=1 << 20)
    """tokens of a sequence"""
    pairs: int = Field(default=4, ge=1)
    """pairs in a sequence"""
    mixture: Annotated[tuple[Shape, ...], Field(strict=False)] = ()
    """instead of one length several, each with its pairs and a weight by which it is drawn, as in
    `[[64, 4, 100], [128, 8, 20]]`; shorter sequences are padded with 0"""
    tests: Annotated[tuple[TestShape, ...], Field(strict=False)] = ()
    """lengths and pairs of the test sets, as in `[[64, 4], [128, 8]]`; by default those of the training"""
    power_a: float = Field(default=0.01, gt=0, le=1)
    """how evenly queries are spread: the gap g before one has a probability like g ** (power_a - 1)"""
    random_non_queries: bool = False
    """whether random symbols stand between the queries, instead of 0; as in the released program, these may
    repeat keys and values of the sequence, and are not scored"""

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
                if length % 2 or pairs > most:
                    raise ValueError(
                        f"{key}: expected an even length and at most {most} pairs in {length} tokens of "
                        f"{self.vocab} symbols, got {pairs}"
                    )
        return self

    @property
    def shapes(self) -> tuple[tuple[int, int, int], ...]:
        """The lengths of the training with their pairs and weights."""
        return self.mixture or ((self.length, self.pairs, 1),)

    @property
    def test_names(self) -> tuple[str, ...]:
        tests = self.tests or tuple((length, pairs) for length, pairs, _ in self.shapes)
        return tuple(dict.fromkeys(f"{length}-{pairs}" for length, pairs in tests))

    @property
    def sizes(self) -> TaskSizes:
        """Keys and values."""
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


class InductionSettings(LengthTask):
    """`[task]` of induction_heads: what stood behind a trigger is asked when that comes again, at the end."""

    lengths: tuple[int, int] = Field(default=(256, 256), strict=False)
    """the shortest and the longest sequence of the training, each length equally often"""
    vocab: int = Field(default=16, ge=2, le=1_000_000)
    """how many symbols there are besides the trigger"""

    def length_fault(self, length: int) -> str | None:
        return None if length >= 3 else "expected lengths of at least 3"

    @property
    def chance(self) -> float:
        return 1 / self.vocab

    @property
    def sizes(self) -> TaskSizes:
        """Padding, the trigger, and the symbols."""
        return TaskSizes(tokens=self.longest_input, vocab=self.vocab + 2)


class NeedleSettings(LengthTask):
    """`[task]` of needle: digits hidden in a text that says nothing, asked one after the other at its end."""

    lengths: tuple[int, int] = Field(default=(64, 256), strict=False)
    """the shortest and the longest sequence of the training, each length equally often"""
    digits: int = Field(default=5, ge=1, le=100)
    """how many digits there are"""
    filler: Literal["cycle", "random"] = "cycle"
    """the text around them: 24 words that come again and again in one order, or in any"""
    depths: Annotated[tuple[Depth, ...], Field(strict=False, min_length=1)] = (0.0, 0.25, 0.5, 0.75, 1.0)
    """where the digits stand in the test sets, of which each length has one for each depth: from 0, the
    beginning, to 1, just before they are asked; in training they stand anywhere"""

    def length_fault(self, length: int) -> str | None:
        least = 2 * self.digits + 1
        return None if length >= least else f"expected lengths of at least {least} with {self.digits} digits"

    @property
    def test_names(self) -> tuple[str, ...]:
        return tuple(f"{length}-{100 * depth:g}" for length in self.test_lengths for depth in self.depths)

    @property
    def chance(self) -> float:
        return 1 / 10

    @property
    def sizes(self) -> TaskSizes:
        """Padding, ten digits, the marker, the question, and words."""
        return TaskSizes(tokens=self.longest_input, vocab=FIRST_WORD + WORDS)


add_synthetic(
    "mqar",
    MqarSettings,
    "pairs of a key and a value, then each key once more, to its value",
    "Arora et al. 2024 (Zoology), section 4 and the released program: multi-query associative recall",
    "Length and pairs",
)
add_synthetic(
    "induction_heads",
    InductionSettings,
    "symbols with a trigger among them to the symbol behind it, where the trigger comes again",
    "Olsson et al. 2022; Gu and Dao 2023 (Mamba), section 4.1",
    "Length",
)
add_synthetic(
    "needle",
    NeedleSettings,
    "a text in which digits are hidden to these digits, asked at its end",
    "Mohtashami and Jaggi 2023 (Landmark Attention), section 4.2: passkey retrieval",
    "Length and depth",
)
