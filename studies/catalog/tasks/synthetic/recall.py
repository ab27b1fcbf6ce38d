"""Tasks of recall: what stood behind a key, a trigger or a marker is asked again later."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from .....grammar.vocabulary.spec import Reach
from ..generated import TaskSizes
from .base import SyntheticTask, add_synthetic

Size = Annotated[int, Field(ge=1, le=1 << 20)]
TestShape = Annotated[tuple[Size, Size], Field(strict=False)]
"""A length and its pairs."""

Shape = Annotated[tuple[Size, Size, Size], Field(strict=False)]
"""A length, its pairs, and a weight."""


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
    """whether random symbols stand between the queries, instead of 0"""

    @model_validator(mode="after")
    def check_pairs(self) -> MqarSettings:
        """Room for the pairs and for their queries, and keys enough."""
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
        """Each length with its pairs, as in 64-4."""
        tests = self.tests or tuple((length, pairs) for length, pairs, _ in self.shapes)
        return tuple(dict.fromkeys(f"{length}-{pairs}" for length, pairs in tests))

    @property
    def sizes(self) -> TaskSizes:
        """Keys and values."""
        return TaskSizes(tokens=max(length for length, _, _ in self.shapes), vocab=self.vocab)

    @property
    def required_reach(self) -> Reach:
        """From the last query to the key of the first pair."""
        return Reach(left=self.sizes.tokens - 2, right=0)


add_synthetic(
    "mqar",
    MqarSettings,
    "pairs of a key and a value, then each key once more, to its value",
    "Arora et al. 2024 (Zoology), section 4 and the released program: multi-query associative recall",
    "Length and pairs",
)
