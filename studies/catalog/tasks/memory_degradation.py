"""Toy problems on which encoders' memory degrades (Harvat and Martín-Guerrero 2022, appendix A)."""

from __future__ import annotations

from dataclasses import dataclass

from ....grammar.model_config import ModelInterface
from .spec import TaskInterface, TaskKind, TaskSettings, TaskSpec, add_own_task

NUM_SPECIAL_TOKENS = 4
"""Padding, start, end and unknown have the first indices; the symbols of a problem follow."""


class DegradationSettings(TaskSettings):
    """Keys of `[task]` for the toy problems, which have no key besides `name`."""

    @property
    def interface(self) -> TaskInterface:
        problem = self.spec
        assert isinstance(problem, DegradationProblem), f"{self.name} has the settings of a toy problem"
        model = ModelInterface(vocab=problem.vocab, source_vocab=problem.vocab)
        return TaskInterface(model=model, tokens=problem.tokens)

    def guessed_value(self, metric: str, test_set: str = "") -> float | None:
        """Return the accuracy of a guess that knows only where the shortest and longest sequences end."""
        problem = self.spec
        if metric not in ("dev_accuracy", "test_accuracy") or not isinstance(problem, DegradationProblem):
            return None
        symbols = (problem.min_length - problem.max_dropped + problem.max_length) / 2
        return (symbols / problem.symbols + 1) / (symbols + 1)

    def epoch_scores(self, *, grows: bool) -> tuple[str, ...]:
        return ("dev_loss", "dev_perplexity", "dev_accuracy")

    def end_scores(self, tested: tuple[str, ...]) -> tuple[str, ...]:
        return (*tested, "test_exact")


@dataclass(frozen=True, slots=True, kw_only=True)
class DegradationProblem(TaskSpec):
    """A toy problem and its random sequences.

    A sequence has `min_length` to `max_length` symbols. There are `sequences` distinct sequences, of which
    the fraction `dev_fraction` is for validation. The paper measures memory on `test_sequences` further
    sequences. Fields with a default of 0 apply to some problems only.
    """

    kind: TaskKind = TaskKind.TRANSDUCTION
    source: str = "Memory degradation, appendix"
    settings: type[TaskSettings] = DegradationSettings
    symbols: int = 128
    min_length: int = 18
    max_length: int = 18
    sequences: int = 30_000
    dev_fraction: float = 0.25
    test_sequences: int = 10_000
    num_repeated_symbols: int = 0
    """how many distinct symbols fill the sequence, each 1 to `max_repeats` times in a row"""
    max_repeats: int = 0
    num_dropped_symbols: int = 0
    """how many symbols are removed from targets; a source has 1 to `max_dropped` of them"""
    max_dropped: int = 0
    num_bigrams: int = 0
    """how many symbols are the first of a bigram, whose second follows with a probability drawn from
    `bigram_probability`"""
    bigram_probability: tuple[float, float] = (0.0, 0.0)

    @property
    def vocab(self) -> int:
        """The number of symbols that a model reads and writes, including the special tokens."""
        return NUM_SPECIAL_TOKENS + self.symbols

    @property
    def tokens(self) -> int:
        """The length to which every sequence is padded, with its start and end tokens."""
        return self.max_length + 2


for _problem in (
    DegradationProblem(
        name="reverse_copy",
        min_length=3,
        summary="reverse a sequence with a decoder that writes token by token",
    ),
    DegradationProblem(
        name="reverse_copy_repeats",
        num_repeated_symbols=7,
        max_repeats=4,
        summary="reverse_copy of 7 symbols, each 1 to 4 times in a row",
    ),
    DegradationProblem(
        name="filter",
        num_dropped_symbols=20,
        max_dropped=7,
        summary="remove the symbols of a fixed set of 20 from a sequence",
    ),
    DegradationProblem(
        name="reverse_copy_bigrams",
        min_length=3,
        num_bigrams=15,
        bigram_probability=(0.5, 0.9),
        summary="reverse_copy of sequences in which 15 symbols mostly have the same successor",
    ),
    DegradationProblem(
        name="reverse_copy_frequent_bigrams",
        min_length=3,
        num_bigrams=15,
        bigram_probability=(0.8, 0.9),
        summary="reverse_copy_bigrams with even more frequent bigrams, as in section 4.3",
    ),
):
    add_own_task(_problem)
