"""Tasks in which a model must update a state at each token: parity, arithmetic, and products in a group."""

from __future__ import annotations

from typing import ClassVar, Literal

from ..generated import TaskSizes
from .base import Lengths, LengthTask, add_synthetic

MODULUS = 5
"""The modulus of modular_arithmetic."""

GROUP_ORDERS = {"Z60": 60, "S3": 6, "S5": 120, "A5": 60, "A4xZ5": 60}
"""The groups of word problems, with their orders."""


class ParitySettings(LengthTask):
    """Keys of `[task]` for parity. A length includes the answer, so an input has one token less."""

    def input_tokens(self, length: int) -> int:
        """Return the number of input bits of a sequence: its length without the answer."""
        return length - 1

    @property
    def chance(self) -> float:
        return 1 / 2

    @property
    def sizes(self) -> TaskSizes:
        """The task's sizes; the vocabulary is padding and two bits."""
        return TaskSizes(tokens=self.longest_input, vocab=3)


class ModularArithmeticSettings(LengthTask):
    """Keys of `[task]` for modular_arithmetic.

    A length includes the answer, so an input has one token less.
    """

    def length_fault(self, length: int) -> str | None:
        return None if length >= 3 else "expected lengths of at least 3: a number, = and the answer"

    def input_tokens(self, length: int) -> int:
        """Return the number of input tokens of a sequence: its length without the answer.

        An even length is first rounded down to an odd length.
        """
        return (length - 1) // 2 * 2

    @property
    def chance(self) -> float:
        return 1 / MODULUS

    @property
    def sizes(self) -> TaskSizes:
        """The task's sizes. The vocabulary is padding, three operations, "=", numbers, and two more."""
        return TaskSizes(tokens=self.longest_input, vocab=MODULUS + FIRST_NUMBER)


PLUS, MINUS, TIMES, EQUALS, FIRST_NUMBER = 1, 2, 3, 4, 7
"""The symbols of modular arithmetic; 0 is padding, and the numbers follow."""


class WordProblemSettings(LengthTask):
    """Keys of `[task]` for word_problem: each target is the product of all elements of a group so far."""

    shortest: ClassVar = 1
    lengths: Lengths = (1, 128)
    """the shortest and the longest training sequence; all lengths between are equally frequent"""
    group: Literal["Z60", "S3", "S5", "A5", "A4xZ5"] = "S3"
    """the group whose elements are multiplied: the cyclic group of order 60; permutations of 3 or 5; even
    permutations of 5; or even permutations of 4 times a cycle of 5"""

    @property
    def chance(self) -> float:
        return 1 / GROUP_ORDERS[self.group]

    @property
    def sizes(self) -> TaskSizes:
        """The task's sizes; the vocabulary is the elements of the group."""
        return TaskSizes(tokens=self.lengths[1], vocab=GROUP_ORDERS[self.group])


add_synthetic(
    "parity",
    ParitySettings,
    "whether the number of ones in a string of bits is odd, at the last bit",
    "Beck et al. 2024 (xLSTM) and their program; Grazzi et al. 2025, section 5.1",
    "Length",
    symbols="1 and 2 are the bits 0 and 1; the answer is 1 if the number of ones is even, 2 if it is odd; a"
    " length counts the answer: 40 has 39 bits",
)
add_synthetic(
    "modular_arithmetic",
    ModularArithmeticSettings,
    "evaluate sums, differences and products of numbers modulo 5, at the =",
    "Delétang et al. 2023; Beck et al. 2024 (xLSTM) and their program; Grazzi et al. 2025, section 5.1",
    "Length",
    symbols="1 to 4 are + − · and =; 7 to 11 are the numbers 0 to 4; a length counts the answer, and an even"
    " one means the odd one below: 39 and 40 both have 38 tokens",
)
add_synthetic(
    "word_problem",
    WordProblemSettings,
    "the product of the elements of a group so far, at each token",
    "Merrill, Petty and Sabharwal 2024 (The Illusion of State); Siems et al. 2025 (DeltaProduct)",
    "Length",
    symbols="each symbol is an element of the group: 0 is the identity, and permutations have lexicographic"
    " order; of a product, the first element is applied first; a length is the number of elements",
)
