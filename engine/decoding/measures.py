"""Measures of outputs: BLEU for sentences, and scores of labelled brackets for trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sacrebleu.metrics.bleu import BLEU

from ..data.treebanks import TRACE, Tree

WIDTH = 10
"""The number of source lengths in a bucket of `bleu_by_length`, in words."""


class Bleu(NamedTuple):
    """A BLEU score between 0 and 100, and the sacrebleu signature of its version, tokeniser and smoothing."""

    score: float
    signature: str


def bleu(hypotheses: Sequence[str], references: Sequence[str], *, tokenizer: str = "13a") -> Bleu:
    """Return the corpus BLEU of translations with one reference each, by a tokeniser of sacrebleu."""
    metric = BLEU(tokenize=tokenizer, force=True)  # some references are tokenised on purpose: no warning
    score = metric.corpus_score(list(hypotheses), [list(references)]).score
    return Bleu(score, str(metric.get_signature()))


def bleu_by_length(
    hypotheses: Sequence[str], references: Sequence[str], lengths: Sequence[int]
) -> dict[str, float]:
    """Return BLEU by source length: "1-10" words, "11-20", and so on (Kaiser and Bengio 2016, figure 6).

    `lengths` has the length of each source. Buckets without a sentence are left out.
    """
    buckets: dict[int, list[int]] = {}
    for sentence, length in enumerate(lengths):
        # an empty source counts as one word
        buckets.setdefault((max(length, 1) - 1) // WIDTH, []).append(sentence)
    return {
        f"{bucket * WIDTH + 1}-{(bucket + 1) * WIDTH}": bleu(
            [hypotheses[each] for each in chosen], [references[each] for each in chosen]
        ).score
        for bucket, chosen in sorted(buckets.items())
    }


# these labels and equal labels are those of EVALB's parameter file COLLINS.prm
_DELETED = frozenset(["TOP", TRACE, ",", ":", "``", "''", "."])
_EQUIVALENT_LABELS = {"PRT": "ADVP"}

Bracket = tuple[str, int, int]
"""A constituent's label, the index of its first word, and the index after its last word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BracketScore:
    """Scores of guessed trees by their labelled brackets, in per cent.

    `right` counts the brackets of the gold trees, `guessed` those of the model's trees, and `matched` those
    in both. EVALB's scores leave out a sentence that has no guess, or whose words differ from the gold words
    after deletion. `missed` counts the brackets in the gold trees of these sentences.
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
        """Return F1 over all sentences; one that EVALB leaves out counts as a guess without brackets."""
        return _percent(2 * self.matched, self.right + self.missed + self.guessed)


def score_brackets(gold: Iterable[Tree], guesses: Iterable[Tree | None]) -> BracketScore:
    """Score guessed trees against gold trees; None means that a guess is missing."""
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
