"""Comparison of each trial's translations with a baseline's, by sacreBLEU's paired bootstrap (Koehn 2004)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ..storage import Store
from ..studies.planning.status import stored_outcomes
from ..studies.planning.trials_to_run import select_trials
from ..studies.resolve.trial import Trial
from ..studies.study import Study
from .statistics.estimates import StatisticsError
from .subject import study_levels

RESAMPLES = 1000
"""The number of resamples, as in sacreBLEU."""

_SCORES = {
    "trial": pl.String,
    "bleu": pl.Float64,
    "bleu_mean": pl.Float64,
    "bleu_ci95": pl.Float64,
    "bleu_difference": pl.Float64,
    "p_value": pl.Float64,
    "baseline_trial": pl.String,
}


def compare_outputs(
    study: Study, store: Store, baseline: Sequence[str], *, tuned: bool = False, tokenizer: str = "13a"
) -> pl.DataFrame:
    """Compare each trial's stored translations with the baseline's, by paired bootstrap.

    Only trials with the baseline's seed and reference translations are compared. The baseline consists of the
    trials with levels such as `model=sa`. With `tuned`, the outputs of tuned decoding are compared, which the
    probes store. The result is a frame with a row for each trial with a baseline, and for each baseline. Its
    columns are the levels, BLEU, the mean over the resamples with half the width of the 95 % interval, the
    difference from the baseline, and the p-value of the difference. The last two are null for a baseline.
    sacreBLEU takes the seed of the resamples from its environment variable SACREBLEU_SEED (default: 12345).
    Raises StudyError for unknown levels. Raises StatisticsError if no baseline has outputs for the same
    lines, or if several baselines have the same seed.
    """
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 -- few ask for this test
    from sacrebleu.significance import PairedTest, Result  # noqa: PLC0415 -- as above

    chosen = select_trials(study, baseline, "--baseline")
    kept = store.outputs([trial.id for trial in study.trials], tuned=tuned)
    kept = kept.filter(pl.col("sizes") != "")  # which predicted labels have
    lines = kept.partition_by("trial", as_dict=True)
    # trials with one seed and the same references can be compared, the baseline first
    groups: dict[tuple[int, tuple[str, ...]], list[tuple[Trial, list[str]]]] = {}
    for trial in sorted(study.trials, key=lambda trial: trial.id not in chosen):
        if (found := lines.get((trial.id,))) is not None:
            pairing = trial.settings.seed, tuple(found["reference"].to_list())
            groups.setdefault(pairing, []).append((trial, found["output"].to_list()))
    rows: list[tuple[object, ...]] = []
    for (seed, references), group in groups.items():
        baselines = sum(trial.id in chosen for trial, _ in group)
        if baselines > 1:
            raise StatisticsError(
                f"expected one baseline with seed {seed}, got several: add levels to {', '.join(baseline)}"
            )
        if not baselines:
            continue
        test = PairedTest(
            [(trial.id, outputs) for trial, outputs in group],
            {"BLEU": BLEU(tokenize=tokenizer, force=True)},
            [list(references)],
            test_type="bs",
            n_samples=RESAMPLES,
        )
        base, *others = (each for each in test()[1]["BLEU"] if isinstance(each, Result))
        first = group[0][0].id
        rows.append((first, base.score, base.mean, base.ci, None, None, None))
        for (trial, _), found in zip(group[1:], others, strict=True):
            numbers = (found.score, found.mean, found.ci, found.score - base.score, found.p_value)
            rows.append((trial.id, *numbers, first))
    if not rows:
        raise StatisticsError(
            f"study {study.name}: expected {'tuned' if tuned else 'kept'} outputs of {', '.join(baseline)} "
            f"in {store.place}, got none"
        )
    scores = pl.DataFrame(rows, schema=_SCORES, orient="row")
    levels = study_levels(study, stored_outcomes(store, study))
    return levels.join(scores, on="trial", how="inner", maintain_order="left")
