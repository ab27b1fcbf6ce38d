"""BLEU computed by sacrebleu, with its signature (Papineni et al. 2002; Post 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU


@dataclass(frozen=True, slots=True, kw_only=True)
class Bleu:
    """A BLEU score between 0 and 100, and sacrebleu's signature: version, tokeniser, smoothing."""

    score: float
    signature: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthBucket:
    """The BLEU score of sentences whose sources have `min_words` to `max_words` words."""

    min_words: int
    max_words: int
    sentences: int
    bleu: Bleu


def bleu(hypotheses: Sequence[str], references: Sequence[str], *, tokenizer: str = "13a") -> Bleu:
    """Return the corpus BLEU of translations, with one reference each.

    Both are plain text; `tokenizer` is a name of sacrebleu's.
    """
    if len(hypotheses) != len(references) or not references:
        expected = f"expected {len(references) or 'some'} hypotheses"
        raise ValueError(f"{expected}, one for each reference, got {len(hypotheses)}")
    metric = BLEU(tokenize=tokenizer, force=True)  # no advice where references look tokenised: some are
    score = metric.corpus_score(list(hypotheses), [list(references)]).score
    return Bleu(score=score, signature=str(metric.get_signature()))


def bleu_by_length(
    hypotheses: Sequence[str], references: Sequence[str], lengths: Sequence[int], *, width: int = 10
) -> list[LengthBucket]:
    """Return BLEU by source length: 1 to `width` words, the next `width`, and so on.

    `lengths` has the length of each source (Kaiser and Bengio 2016, figure 6). Buckets without a sentence are
    left out; the shortest come first.
    """
    buckets: dict[int, list[int]] = {}
    for sentence, length in enumerate(lengths):
        buckets.setdefault((max(length, 1) - 1) // width, []).append(sentence)
    return [
        LengthBucket(
            min_words=bucket * width + 1,
            max_words=(bucket + 1) * width,
            sentences=len(chosen),
            bleu=bleu([hypotheses[each] for each in chosen], [references[each] for each in chosen]),
        )
        for bucket, chosen in sorted(buckets.items())
    ]
