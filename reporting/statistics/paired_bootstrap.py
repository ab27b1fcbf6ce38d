"""The significance of differences between translations: sacreBLEU's paired bootstrap.

Koehn (2004) describes the method, and Post (2018) the program.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .estimates import StatisticsError

if TYPE_CHECKING:
    from sacrebleu.significance import Result

SAMPLES, SEED = 1000, 12345
"""The number of resamples, and their seed, as in sacreBLEU."""

_SEED_VARIABLE = "SACREBLEU_SEED"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapScore:
    """BLEU of a system, its mean over the resamples, and half the width of the 95 % interval around it.

    `p` is the two-sided p of its difference from the baseline; None for the baseline itself.
    """

    bleu: float
    mean: float
    half_width: float
    p: float | None


def paired_bootstrap(
    baseline: Sequence[str],
    systems: Sequence[Sequence[str]],
    references: Sequence[str],
    *,
    tokenizer: str = "13a",
    samples: int = SAMPLES,
    seed: int = SEED,
) -> list[BootstrapScore]:
    """Return the scores of a baseline and of systems that translated the same sentences, in this order.

    All systems are resampled with the same sentences. Raise StatisticsError for a wrong number of lines, and
    for a seed below 1.
    """
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 -- few ask for this test
    from sacrebleu.significance import PairedTest, Result  # noqa: PLC0415 -- as above

    lengths = [len(lines) for lines in (baseline, *systems)]
    if not references or set(lengths) != {len(references)}:
        counts = ", ".join(map(str, lengths))
        raise StatisticsError(f"expected {len(references) or 'some'} lines of each system, got {counts}")
    if seed < 1 or samples < 1:
        raise StatisticsError(f"expected a seed and samples of at least 1, got {seed} and {samples}")
    named: list[tuple[str, Sequence[str]]] = [
        (str(number), list(lines)) for number, lines in enumerate((baseline, *systems))
    ]
    with _seeded(seed):
        test = PairedTest(
            named,
            {"BLEU": BLEU(tokenize=tokenizer, force=True)},
            [list(references)],
            test_type="bs",
            n_samples=samples,
        )
    _, scores = test()
    return [_bootstrap_score(found) for found in scores["BLEU"] if isinstance(found, Result)]


def _bootstrap_score(found: Result) -> BootstrapScore:
    assert found.mean is not None, "a bootstrap has a mean"
    assert found.ci is not None, "a bootstrap has an interval"
    p = None if found.p_value is None else float(found.p_value)
    return BootstrapScore(bleu=float(found.score), mean=float(found.mean), half_width=float(found.ci), p=p)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Pass sacreBLEU its seed, which it reads from the environment; restore the environment after."""
    before = os.environ.get(_SEED_VARIABLE)
    os.environ[_SEED_VARIABLE] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SEED_VARIABLE]
        else:
            os.environ[_SEED_VARIABLE] = before
