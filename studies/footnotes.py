"""Footnotes: a mark for each sentence, lettered in the order of their first use."""

from __future__ import annotations

from .table import Footnote


class Footnotes:
    """The footnotes of one table while its cells are filled; equal sentences share a mark."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}

    def mark(self, sentence: str) -> str:
        """The mark of a sentence: a to z, then aa, ab and so on."""
        number, letters = len(self._marks) + 1, ""
        while number:
            number, letter = divmod(number - 1, 26)
            letters = chr(ord("a") + letter) + letters
        return self._marks.setdefault(sentence, letters)

    def all(self) -> tuple[Footnote, ...]:
        """Every footnote that was asked for."""
        return tuple(Footnote(mark=mark, text=sentence) for sentence, mark in self._marks.items())
