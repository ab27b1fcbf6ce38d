"""The algorithmic tasks, which map sequences of any length to sequences of the same length."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from ....grammar.model_config import ModelInterface
from ....grammar.vocabulary.spec import Reach
from ...text.strict_model import StrictModel, validate
from .spec import TaskError, TaskInterface, TaskKind, TaskSettings, TaskSpec, add_own_task, require_task

_SOURCE = "Active memory in a Transformer, section 4.2, and its released program"
_MAX_LENGTH = 1 << 20  # tokens; a task that can be learnt up to this length counts as unlimited

Length = Annotated[int, Field(ge=1, le=_MAX_LENGTH)]
"""A length as `[task]` states it; some tasks have sequences of twice this length."""

DEV_SEQUENCES = 1000
"""The default number of dev sequences without a curriculum."""

MAX_TEST_LENGTHS = 10_000


class LengthRange(StrictModel):
    """A range of test lengths: `{ first = 41, last = 500 }`."""

    first: Length
    """the shortest length"""
    last: Length
    """the longest length"""
    step: int = Field(default=1, ge=1)
    """the distance between neighbouring lengths"""

    @model_validator(mode="after")
    def _check_ends(self) -> LengthRange:
        if self.last < self.first:
            raise ValueError(f"expected last of at least first = {self.first}, got {self.last}")
        return self


def _read_lengths(given: object) -> object:
    if not isinstance(given, Mapping):
        return given
    asked = validate(LengthRange, given)
    return tuple(range(asked.first, asked.last + 1, asked.step)[: MAX_TEST_LENGTHS + 1])


def _check_increasing(lengths: tuple[int, ...]) -> tuple[int, ...]:
    for shorter, longer in pairwise(lengths):
        if shorter >= longer:
            raise ValueError(f"must be strictly increasing, but {shorter} is followed by {longer}")
    return lengths


IncreasingLengths = Annotated[
    tuple[Length, ...],
    BeforeValidator(_read_lengths, json_schema_input_type=tuple[Length, ...] | LengthRange),
    Field(strict=False, max_length=MAX_TEST_LENGTHS),
    AfterValidator(_check_increasing),
]
"""Lengths as a list, or as `{ first = 41, last = 500, step = 1 }`."""


class AlgorithmicSettings(TaskSettings):
    """Keys of `[task]` for algorithmic tasks: the number of scored sequences and their lengths."""

    test_keys: ClassVar[frozenset[str]] = frozenset({"test_lengths", "test_examples"})

    dev_examples: int | None = Field(default=None, ge=1, le=1_000_000, serialization_alias="dev_sequences")
    """sequences that are scored after each epoch; with a curriculum fresh ones of the current length
    (default: one batch), otherwise a fixed set over all training lengths (default: 1,000)"""
    test_lengths: IncreasingLengths = ()
    """lengths at which the trained model is tested, on the same sequences in all trials: a list, or `{ first
    = 41, last = 500, step = 1 }`"""
    test_examples: int = Field(default=1000, ge=1, le=100_000, serialization_alias="test_sequences")
    """the number of test sequences of each test length"""

    @model_validator(mode="after")
    def _check_lengths(self) -> AlgorithmicSettings:
        if not self.test_lengths and "test_examples" in self.model_fields_set:
            default = type(self).model_fields["test_examples"].default
            if self.test_examples != default:
                raise ValueError(f"test_examples = {self.test_examples} needs test_lengths, which is missing")
        for length in self.test_lengths:
            try:
                require_algorithmic(self.name).check_length(length)
            except TaskError as error:
                raise ValueError(f"test_lengths: {error}") from None
        return self

    @property
    def symbols(self) -> int:
        """The number of different symbols in inputs and targets."""
        return require_algorithmic(self.name).vocab

    def guessed_value(self, metric: str, test_set: str = "") -> float | None:
        if metric == "max_length":
            return 0.0
        chance = require_algorithmic(self.name).chance
        is_accuracy = metric in ("accuracy", "dev_accuracy", "test_accuracy")
        return chance(self.symbols) if chance and is_accuracy else None

    @property
    def interface(self) -> TaskInterface:
        return TaskInterface(model=ModelInterface(vocab=self.symbols))

    def epoch_scores(self, *, grows: bool) -> tuple[str, ...]:
        return ("accuracy", "length", "max_length") if grows else ("dev_loss", "dev_accuracy", "dev_exact")

    def end_scores(self, tested: tuple[str, ...]) -> tuple[str, ...]:
        return ("test_loss", "test_accuracy", "test_exact") if self.test_lengths else ()

    @property
    def test_set_names(self) -> tuple[str, ...]:
        return tuple(map(str, self.test_lengths))


class SymbolSettings(AlgorithmicSettings):
    """Keys of `[task]` for algorithmic tasks whose number of symbols can be chosen."""

    vocab: int | None = Field(default=None, ge=2, le=1_000_000)
    """the number of symbols (default: as in the paper)"""

    @field_validator("vocab")
    @classmethod
    def _omit_default(cls, vocab: int | None, info: ValidationInfo) -> int | None:
        """Replace the default number of symbols by None, so that writing it does not change trial ids."""
        name = info.data.get("name")
        return None if name is not None and vocab == require_algorithmic(name).vocab else vocab

    @property
    def symbols(self) -> int:
        """The number of different symbols in inputs and targets."""
        return self.vocab or require_algorithmic(self.name).vocab


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmicTask(TaskSpec):
    """An algorithmic task: its valid lengths, and how far a model must see to solve it.

    `length` always means the nominal length, which a curriculum grows and tables report. `unguessable_reach`
    is how far a model must see to each side. For a model that sees less on one side, the probability of a
    correct output at one position in all of 32 random sequences is below 5 %, independently for each longer
    length. Inputs farther away may change an output, but rarely do, as in long carries. `example` is an
    input, its target and their meaning, as printed in the paper.
    """

    kind: TaskKind = TaskKind.TAGGING
    source: str = _SOURCE
    settings: type[TaskSettings] = AlgorithmicSettings
    test_sets_title: str = "Length"
    vocab: int
    start: int = 5
    length_step: int = 1
    min_length: int = 1
    odd_lengths_only: bool = False
    doubles_length: bool = False  # a sequence has twice as many tokens as its length in [task]
    unguessable_reach: Callable[[int], Reach]
    chance: Callable[[int], float] | None = None
    """the accuracy of a guess, from the number of symbols; None if it depends on the length"""
    example: tuple[str, str, str] | None = None

    def sequence_length(self, length: int) -> int:
        """Return the number of tokens of a sequence with the nominal length `length`."""
        return 2 * length if self.doubles_length else length

    def lengths(self, shortest: int, longest: int) -> range:
        """Return the task's valid lengths from `shortest` to `longest`, both included."""
        return range(shortest, longest + 1, 2 if self.odd_lengths_only else 1)

    def check_length(self, length: int) -> None:
        """Raise TaskError for a length that the task does not allow."""
        if length < self.min_length or (self.odd_lengths_only and length % 2 == 0):
            kind = "an odd length" if self.odd_lengths_only else "a length"
            raise TaskError(f"expected {kind} of at least {self.min_length} for {self.name}, got {length}")

    def max_learnable_length(self, reach: Reach) -> int | None:
        """Return the longest length that a model can learn if it sees only `reach` tokens to each side.

        Outputs that a lucky guess gets right do not count. Return 0 if no length can be learned, and None if
        every length can.
        """
        # the fit is monotonic in the length, so a bisection over a million lengths needs 20 calls
        lengths = self.lengths(self.min_length, _MAX_LENGTH - 1)
        fitting = bisect_left(lengths, True, key=lambda length: not self._is_learnable(length, reach))
        if fitting == len(lengths):
            return None
        return lengths[fitting - 1] if fitting else 0

    def _is_learnable(self, length: int, reach: Reach) -> bool:
        certain = self.unguessable_reach(length)
        return certain.left <= reach.left and certain.right <= reach.right


def require_algorithmic(name: str) -> AlgorithmicTask:
    """Return the algorithmic task with this name; raise TaskError for other names."""
    spec = require_task(name)
    if not isinstance(spec, AlgorithmicTask):
        raise TaskError(f"expected an algorithmic task, got {name}")
    return spec


def _addition(length: int) -> Reach:
    # to the left, an output depends on the first operand's bit of the same weight; to the right, a carry from
    # two places away changes it with a probability of only 1/4
    bits = (length - 1) // 2
    return Reach(left=bits + 1, right=min(2, bits - 1))


def _multiplication(length: int) -> Reach:
    # the middle bit of a product is the parity of all partial products
    bits = (length - 1) // 2
    return Reach(left=bits + 1, right=bits - 1)


for _task in (
    AlgorithmicTask(
        name="copy",
        vocab=100,
        settings=SymbolSettings,
        chance=lambda symbols: 1 / symbols,
        unguessable_reach=lambda _length: Reach(left=0, right=0),
        summary="copy a sequence; needs no mixer",
    ),
    AlgorithmicTask(
        name="reverse",
        vocab=100,
        settings=SymbolSettings,
        chance=lambda symbols: 1 / symbols,
        unguessable_reach=lambda length: Reach(left=length - 1, right=length - 1),
        summary="write a sequence in reverse order",
    ),
    AlgorithmicTask(
        name="sort",
        vocab=20,
        settings=SymbolSettings,
        # with fewer symbols in sight, a model guesses where one value ends
        unguessable_reach=lambda length: Reach(left=3 * length // 4, right=3 * length // 4),
        summary="sort a sequence in ascending order",
    ),
    AlgorithmicTask(
        name="remember",
        vocab=20,
        settings=SymbolSettings,
        doubles_length=True,
        chance=lambda symbols: (1 + 1 / symbols) / 2,
        unguessable_reach=lambda length: Reach(left=length, right=0),
        summary="move a sequence: [x ; 0…0] to [0…0 ; x]; lengths are those of x; accuracies count the zeros",
    ),
    AlgorithmicTask(
        name="duplicate",
        vocab=20,
        settings=SymbolSettings,
        doubles_length=True,
        chance=lambda symbols: 1 / symbols,
        unguessable_reach=lambda length: Reach(left=length, right=0),
        summary="write a sequence twice: [x ; 0…0] to [x ; x]; lengths are those of x; accuracies count both",
    ),
    AlgorithmicTask(
        name="addition",
        vocab=3,
        length_step=2,
        min_length=5,
        odd_lengths_only=True,
        unguessable_reach=_addition,
        summary="add two binary numbers: a 2 b to a + b, highest bit first",
        example=("1 0 1 1 2 0 0 1 1", "0 0 0 0 0 1 1 1 0", "11 + 3 = 14, Table 2"),
    ),
    AlgorithmicTask(
        name="multiply",
        vocab=3,
        length_step=2,
        min_length=5,
        odd_lengths_only=True,
        unguessable_reach=_multiplication,
        summary="multiply two binary numbers: a 2 b to a · b, highest bit first",
        example=("1 0 1 0 1 2 0 1 1 0 0", "0 0 0 1 1 1 1 1 1 0 0", "21 · 12 = 252, Table 3"),
    ),
    AlgorithmicTask(
        name="not",
        vocab=3,
        chance=lambda _symbols: 1 / 2,
        unguessable_reach=lambda _length: Reach(left=0, right=0),
        summary="flip each bit",
    ),
    *(
        AlgorithmicTask(
            name=gate,
            vocab=3,
            length_step=2,
            chance=lambda _symbols, gate=gate: 3 / 4 if "x" in gate else 7 / 8,
            unguessable_reach=lambda length: Reach(left=0, right=min(1, length - 1)),
            summary=f"the {gate} of each pair of neighbouring bits, in the place of the first",
        )
        for gate in ("and", "nand", "or", "nor", "xor", "xnor")
    ),
):
    add_own_task(_task)
