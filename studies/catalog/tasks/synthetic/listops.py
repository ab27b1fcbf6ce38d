"""ListOps: nested lists of digits with an operation each, to the value of the outermost."""

from __future__ import annotations

from pydantic import Field

from ..generated import TaskSizes
from .base import LengthTask, add_synthetic

ASK, CLOSE, FIRST_OPERATION, FIRST_DIGIT = 1, 2, 3, 7
"""The symbols: where the value is asked, the end of a list, the operations that begin one, and the digits."""

OPERATIONS = ("MIN", "MAX", "MED", "SM")
"""The operations in the order of their symbols; SM is the sum modulo 10, MED the lower of two medians."""


class ListopsSettings(LengthTask):
    """Settings of listops in `[task]`; lengths count an expression without the token that asks."""

    lengths: tuple[int, int] = Field(default=(500, 2000), strict=False)
    """the shortest and the longest expression of the training, each length equally often"""
    arguments: int = Field(default=10, ge=5, le=100)
    """the most that a list has"""

    def length_fault(self, length: int) -> str | None:
        return None if length >= 4 else "expected lengths of at least 4"

    def input_tokens(self, length: int) -> int:
        """Return the tokens of an expression and the token that asks."""
        return length + 1

    @property
    def chance(self) -> float:
        return 1 / 10

    @property
    def sizes(self) -> TaskSizes:
        """Padding, the token that asks, the end of a list, operations and digits."""
        return TaskSizes(tokens=self.longest_input, vocab=FIRST_DIGIT + 10)


add_synthetic(
    "listops",
    ListopsSettings,
    "nested lists of digits, each with MIN, MAX, MED or SM, to the value of the whole",
    "Nangia and Bowman 2018 (ListOps); Tay et al. 2021 (Long Range Arena), with lengths drawn first",
    "Length",
)
