"""The fifteen tasks of the Chomsky hierarchy.

An input is a string, then empty tokens at which the answer is predicted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..generated import TaskSizes
from .base import Lengths, LengthTask, add_synthetic

EMPTY, FIRST_SYMBOL = 1, 2
"""The token at which an answer is predicted, and the first symbol of strings and answers; 0 is padding."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One of the fifteen problems: its symbols, the length of its answers, and its shortest string.

    `chance` is the accuracy of guessing, None if answers vary in length.
    """

    symbols: int
    answer: Literal["one", "same", "one more", "double", "half"] = "one"
    shortest: int = 1
    chance: float | None = 0.5

    def answer_length(self, length: int) -> int:
        """Return the number of tokens of the answer to a string of this length."""
        lengths = {
            "one": 1,
            "same": length,
            "one more": length + 1,
            "double": 2 * length,
            "half": (length + 1) // 2,
        }
        return lengths[self.answer]


PROBLEMS = {
    "even_pairs": Problem(2),
    "parity_check": Problem(2),
    "cycle_navigation": Problem(5, chance=0.2),
    "modular_arithmetic": Problem(8, chance=0.2),
    "stack_manipulation": Problem(5, "one more", chance=None),
    "reverse_string": Problem(2, "same"),
    "modular_arithmetic_brackets": Problem(11, chance=0.2),
    "solve_equation": Problem(12, shortest=3, chance=0.2),
    "duplicate_string": Problem(2, "double"),
    "missing_duplicate_string": Problem(4, shortest=2),
    "odds_first": Problem(2, "same"),
    "binary_addition": Problem(3, "one more", shortest=3, chance=None),
    "binary_multiplication": Problem(3, "same", shortest=3, chance=None),
    "compute_sqrt": Problem(2, "half"),
    "bucket_sort": Problem(5, "same", chance=0.2),
}
"""The problems, in this order: regular, deterministic context-free, context-sensitive."""


class ChomskySettings(LengthTask):
    """Keys of `[task]` for chomsky_hierarchy.

    Its lengths count only the string, without the empty tokens at which the answer is predicted.
    """

    lengths: Lengths = (3, 40)
    """the shortest and the longest training string; all lengths between are equally frequent"""
    problem: Literal[*PROBLEMS] = "parity_check"  # pyright: ignore[reportInvalidTypeForm]
    """the problem, one of the fifteen"""

    def length_fault(self, length: int) -> str | None:
        least = PROBLEMS[self.problem].shortest
        return None if length >= least else f"expected lengths of at least {least}"

    def input_tokens(self, length: int) -> int:
        """Return the number of input tokens: a string, and an empty token for each token of the answer."""
        return length + PROBLEMS[self.problem].answer_length(length)

    @property
    def chance(self) -> float | None:
        return PROBLEMS[self.problem].chance

    @property
    def sizes(self) -> TaskSizes:
        """The task's sizes. The vocabulary is padding, the empty token, and the problem's symbols."""
        return TaskSizes(tokens=self.longest_input, vocab=FIRST_SYMBOL + PROBLEMS[self.problem].symbols)

    @property
    def required_reach(self) -> None:
        return


add_synthetic(
    "chomsky_hierarchy",
    ChomskySettings,
    "solve one of fifteen problems on strings, with the answer at empty tokens after the string",
    "Delétang et al. 2023 (Neural Networks and the Chomsky Hierarchy), appendix A, and their program",
    "Length",
    symbols="1 is the empty token, at which the answer is asked; strings and answers have symbols from 2 on;"
    " a length is that of the string",
)
