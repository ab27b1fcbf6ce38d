"""BLEU computed by sacrebleu, with its signature (Papineni et al. 2002; Post 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics.bleu import BLEU

WIDTH = 10
"""The number of source lengths in a bucket of `bleu_by_length`, in words."""


class Bleu(NamedTuple):
    """A BLEU score between 0 and 100, and sacrebleu's signature: version, tokeniser, smoothing."""

    score: float
    signature: str


def bleu(hypotheses: Sequence[str], references: Sequence[str], *, tokenizer: str = "13a") -> Bleu:
    """Return the corpus BLEU of translations with one reference each; `tokenizer` is sacrebleu's name."""
    metric = BLEU(tokenize=tokenizer, force=True)  # no advice where references look tokenised: some are
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
        buckets.setdefault((max(length, 1) - 1) // WIDTH, []).append(sentence)
    return {
        f"{bucket * WIDTH + 1}-{(bucket + 1) * WIDTH}": bleu(
            [hypotheses[each] for each in chosen], [references[each] for each in chosen]
        ).score
        for bucket, chosen in sorted(buckets.items())
    }
