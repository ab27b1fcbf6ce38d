"""The answer of a trained model to a line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The prediction of a model for one line.

    `text` is one line, which is empty for an empty line, and `output` has the same as plain data. Labels of
    tokens are a list. A token that the model did not read has the label None, and UNREAD in `text`.
    `probabilities` maps every class to its probability. For labels of tokens, it is a list of such mappings.
    For symbols, it is a list with the probability of each symbol of `output`. It is None if the model gives
    no probabilities. `unknown` has the line's symbols that are not in the vocabulary, and `unread` counts the
    tokens beyond the longest sequence.
    """

    text: str = ""
    output: str | list[str | None] = ""
    probabilities: dict[str, float] | list[float] | list[dict[str, float]] | None = None
    unknown: tuple[str, ...] = ()
    unread: int = 0
