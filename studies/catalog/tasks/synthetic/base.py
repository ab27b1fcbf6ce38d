"""Base classes of the built-in synthetic tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, model_validator

from .....grammar.vocabulary.spec import Reach
from ..algorithmic import IncreasingLengths, Length
from ..generated import Draw, Examples, GeneratedTask
from ..spec import TaskKind, TaskSpec, add_own_task

if TYPE_CHECKING:
    from torch import Generator, Tensor

DrawRule = Callable[[Any, int, str | None, "Generator"], Examples]
"""Draws examples from settings, their number, a test set (None for training) and a generator."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Functions that draw and solve a task's examples.

    `draw` makes examples, and `solve` computes targets from inputs. `solve` is None for tasks whose inputs do
    not determine their targets.
    """

    draw: DrawRule
    solve: Callable[[Any, Tensor], Tensor | None] | None = None


RULES: dict[str, Rule] = {}
"""The rules by task name; `engine/tasks/synthetic` registers them."""


class SyntheticTask(GeneratedTask, ABC):
    """Base class for the `[task]` keys of a built-in task whose examples are drawn at random."""

    test_keys: ClassVar[frozenset[str]] = frozenset({"test_lengths", "tests", "test_examples"})

    test_examples: int = Field(default=1000, ge=1, le=100_000)
    """the number of examples of each test set"""

    @property
    @abstractmethod
    def test_names(self) -> tuple[str, ...]:
        """The names of the test sets."""

    @property
    def most_tokens(self) -> int:
        """The number of tokens of the longest input, in training and test sets."""
        return self.sizes.tokens

    def draw(self, count: int, generator: Generator) -> Examples:
        return RULES[self.name].draw(self, count, None, generator)

    def test_sets(self) -> Mapping[str, Draw]:
        return {name: partial(self._draw_test_set, name) for name in self.test_names}

    def solve(self, inputs: Tensor) -> Tensor | None:
        rule = RULES[self.name]
        return None if rule.solve is None else rule.solve(self, inputs)

    def _draw_test_set(self, name: str, generator: Generator) -> Examples:
        # rules are registered by the engine, which is not loaded while a study is read
        return RULES[self.name].draw(self, self.test_examples, name, generator)


Lengths = Annotated[tuple[Length, Length], Field(strict=False)]
"""The shortest and the longest length."""


class LengthTask(SyntheticTask, ABC):
    """Base class for the `[task]` keys of a task with separate training and test lengths."""

    shortest: ClassVar[int] = 2
    lengths: Lengths = (3, 40)
    """the shortest and the longest training sequence; all lengths between are equally frequent"""
    test_lengths: IncreasingLengths = ()
    """lengths at which the trained model is tested, each a test set that all trials share: a list, or `{
    first = 40, last = 256, step = 8 }`"""

    @model_validator(mode="after")
    def _check_lengths(self) -> LengthTask:
        low, high = self.lengths
        if low > high:
            raise ValueError(f"expected lengths = [shortest, longest], got [{low}, {high}]")
        for key, lengths in (("lengths", self.lengths), ("test_lengths", self.test_lengths)):
            for length in lengths:
                if (fault := self.length_fault(length)) is not None:
                    raise ValueError(f"{key}: {fault}, got {length}")
        return self

    def length_fault(self, length: int) -> str | None:
        """Return an error message if this length is not allowed, else None."""
        return None if length >= self.shortest else f"expected lengths of at least {self.shortest}"

    @property
    def test_names(self) -> tuple[str, ...]:
        return tuple(map(str, self.test_lengths))

    def input_tokens(self, length: int) -> int:
        """Return the number of input tokens of a sequence of this length, as given in `[task]`."""
        return length

    @property
    def longest_input(self) -> int:
        """The number of tokens of the longest training input."""
        return self.input_tokens(self.lengths[1])

    @property
    def most_tokens(self) -> int:
        return max(map(self.input_tokens, (self.lengths[1], *self.test_lengths)))

    @property
    def has_one_shape(self) -> bool:
        return self.lengths[0] == self.lengths[1]

    @property
    def required_reach(self) -> Reach | None:
        return Reach(left=self.longest_input - 1, right=0)


def add_synthetic(
    name: str, settings: type[SyntheticTask], summary: str, source: str, title: str, *, symbols: str
) -> None:
    """Register a synthetic task with the class of its `[task]` keys and the meaning of its `symbols`."""
    add_own_task(
        TaskSpec(
            name=name,
            kind=TaskKind.CAUSAL_TAGGING,
            settings=settings,
            summary=summary,
            source=source,
            test_sets_title=title,
            meaning=symbols,
        )
    )
