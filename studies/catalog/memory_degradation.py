"""The toy problems on which memory degrades (Harvat and Martín-Guerrero 2022, section 3.2 and appendix A)."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from .tasks import TaskError

NUM_SPECIAL_TOKENS = 4
"""Numbers of padding, start, end and unknown, behind which the symbols of a problem begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DegradationProblem:
    """Random sequences of `shortest` to `longest` symbols, and what is to be made of them.

    Of `sequences` different ones `held_out` are for validation; `measured` further ones are those on which
    the paper measures memory. The fields below say what is special in a problem, and are 0 in the others.
    """

    name: str
    summary: str
    symbols: int = 128
    min_length: int = 18
    max_length: int = 18
    sequences: int = 30_000
    dev_fraction: float = 0.25
    test_sequences: int = 10_000
    num_repeated_symbols: int = 0
    """so many symbols fill the sequence, each 1 to `repeats` times in a row"""
    max_repeats: int = 0
    num_dropped_symbols: int = 0
    """so many symbols do not belong into the target; of a source, 1 to `dropped` do not"""
    max_dropped: int = 0
    num_bigrams: int = 0
    """so many symbols have a successor that follows with a probability drawn from `frequency`"""
    bigram_probability: tuple[float, float] = (0.0, 0.0)

    @property
    def vocab(self) -> int:
        """The numbers of the symbols, and those of what is none."""
        return NUM_SPECIAL_TOKENS + self.symbols

    @property
    def tokens(self) -> int:
        """The length of all sequences, with their start, their end, and padding."""
        return self.max_length + 2


_PROBLEMS = {
    problem.name: problem
    for problem in (
        DegradationProblem(name="reverse_copy", min_length=3, summary="x to x reversed"),
        DegradationProblem(
            name="reverse_copy_repeats",
            num_repeated_symbols=7,
            max_repeats=4,
            summary="x to x reversed, where x has 7 symbols, 1 to 4 times in a row each",
        ),
        DegradationProblem(
            name="filter",
            num_dropped_symbols=20,
            max_dropped=7,
            summary="x to x without the symbols of a fixed set of 20",
        ),
        DegradationProblem(
            name="reverse_copy_bigrams",
            min_length=3,
            num_bigrams=15,
            bigram_probability=(0.5, 0.9),
            summary="x to x reversed, where 15 symbols mostly have the same successor",
        ),
        DegradationProblem(
            name="reverse_copy_frequent_bigrams",
            min_length=3,
            num_bigrams=15,
            bigram_probability=(0.8, 0.9),
            summary="the same with still more frequent bigrams, as in section 4.3",
        ),
    )
}


def degradation_names() -> tuple[str, ...]:
    """The names of all toy problems, as the paper orders them."""
    return tuple(_PROBLEMS)


def require_degradation(name: str) -> DegradationProblem:
    """The toy problem of that name; TaskError with the nearest name if there is none."""
    if name not in _PROBLEMS:
        nearest = get_close_matches(name, _PROBLEMS, n=1, cutoff=0)
        raise TaskError(f"unknown problem '{name}'; nearest: {', '.join(nearest)}")
    return _PROBLEMS[name]
