"""Labelled-bracket scores of trees, by the rules of EVALB with its parameters COLLINS.prm.

Sources: Sekine and Collins 1997, Black et al. 1991. EVALB deletes the words with certain tags, and then
constituents without words. It cuts labels at their first `-` or `=`. A remaining constituent matches if the
other tree has the same label over the same remaining words. Each constituent matches once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ..data.treebanks import TRACE, Tree

_DELETED = frozenset(["TOP", TRACE, ",", ":", "``", "''", "."])
_EQUIVALENT_LABELS = {"PRT": "ADVP"}

Bracket = tuple[str, int, int]
"""A constituent's label, the index of its first word, and the index after its last word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BracketScore:
    """Summed bracket counts of gold trees and guesses; scores are per cent.

    No score of EVALB counts a sentence without a guess, or whose words differ from the gold words after
    deletion; `missed` counts the brackets of their gold trees.
    """

    matched: int = 0
    right: int = 0
    guessed: int = 0
    missed: int = 0

    @property
    def recall(self) -> float:
        """Return the share of the gold brackets that were guessed."""
        return _percent(self.matched, self.right)

    @property
    def precision(self) -> float:
        """Return the share of the guessed brackets that are correct."""
        return _percent(self.matched, self.guessed)

    @property
    def f1(self) -> float:
        """Return the harmonic mean of precision and recall, as EVALB prints it."""
        return _percent(2 * self.matched, self.right + self.guessed)

    @property
    def f1_of_all(self) -> float:
        """Return F1 over all sentences; an erroneous or skipped sentence counts as an empty guess."""
        return _percent(2 * self.matched, self.right + self.missed + self.guessed)


def score_brackets(gold: Iterable[Tree], guesses: Iterable[Tree | None]) -> BracketScore:
    """Score guesses against gold trees; a missing guess is None."""
    totals: Counter[str] = Counter()
    for tree, guess in zip(gold, guesses, strict=True):
        totals.update(_compared(tree, guess))
    return BracketScore(**totals)


def _compared(tree: Tree, guess: Tree | None) -> dict[str, int]:
    words, right = _words_and_brackets(tree)
    found, guessed = ([], Counter()) if guess is None else _words_and_brackets(guess)
    if not found or words != found:
        return {"missed": right.total()}
    return {"matched": (right & guessed).total(), "right": right.total(), "guessed": guessed.total()}


def _words_and_brackets(tree: Tree) -> tuple[list[str], Counter[Bracket]]:
    words: list[str] = []
    found: Counter[Bracket] = Counter()

    def walk(node: Tree) -> None:
        start = len(words)
        for child in node.children:
            if isinstance(child, Tree):
                walk(child)
            elif child.tag not in _DELETED:
                words.append(child.word)
        label = node.label.replace("=", "-").partition("-")[0]
        if len(words) > start and label not in _DELETED:
            found[_EQUIVALENT_LABELS.get(label, label), start, len(words)] += 1

    walk(tree)
    return words, found


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
