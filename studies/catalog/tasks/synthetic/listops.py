"""ListOps: nested lists of digits with operations; the target is the value of the outermost list."""

from __future__ import annotations

from typing import ClassVar

from ..generated import TaskSizes
from .base import Lengths, LengthTask, add_synthetic

ASK, CLOSE, FIRST_OPERATION, FIRST_DIGIT = 1, 2, 3, 7
"""The symbols: the query for the value, the end of a list, the operations that begin one, and the digits."""

OPERATIONS = ("MIN", "MAX", "MED", "SM")
"""The operations in the order of their symbols; SM is the sum modulo 10, MED the lower of two medians."""


class ListopsSettings(LengthTask):
    """Keys of `[task]` for listops.

    Its lengths count only the expression, without the query token at its end.
    """

    shortest: ClassVar = 4
    lengths: Lengths = (500, 2000)
    """the shortest and the longest training expression; all lengths between are equally frequent"""

    def input_tokens(self, length: int) -> int:
        """Return the number of tokens of an expression with its query token."""
        return length + 1

    @property
    def chance(self) -> float:
        return 1 / 10

    @property
    def sizes(self) -> TaskSizes:
        """The task's sizes.

        The vocabulary is padding, the query token, the end of a list, operations and digits.
        """
        return TaskSizes(tokens=self.longest_input, vocab=FIRST_DIGIT + 10)


add_synthetic(
    "listops",
    ListopsSettings,
    "evaluate nested lists of digits with the operators MIN, MAX, MED and SM",
    "Nangia and Bowman 2018 (ListOps); Tay et al. 2021 (Long Range Arena), with lengths drawn first",
    "Length",
    symbols="1 asks for the value; 2 ends a list, 3 to 6 begin MIN, MAX, MED and SM; digits are from 7 on",
)
