"""Comparison of each trial's translations with a baseline's, by paired bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ..storage import Store
from ..studies.planning.status import stored_outcomes
from ..studies.planning.trials_to_run import select_trials
from ..studies.resolve.trial import Trial
from ..studies.study import Study
from .statistics.estimates import StatisticsError
from .statistics.stratified_bootstrap import SAMPLES, SEED, BootstrapScore, paired_bootstrap
from .subject import study_levels

_SCORES = {
    "trial": pl.String,
    "bleu": pl.Float64,
    "bleu_mean": pl.Float64,
    "bleu_ci95": pl.Float64,
    "bleu_difference": pl.Float64,
    "p_value": pl.Float64,
    "baseline_trial": pl.String,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Translation:
    """The stored translations of one trial.

    Two trials can be compared if they have the same seed and the same reference translations.
    """

    trial: Trial
    references: tuple[str, ...]
    outputs: list[str]

    @property
    def pairing(self) -> tuple[int, tuple[str, ...]]:
        return self.trial.settings.seed, self.references


def compare_outputs(
    study: Study,
    store: Store,
    baseline: Sequence[str],
    *,
    tuned: bool = False,
    tokenizer: str = "13a",
    samples: int = SAMPLES,
    seed: int = SEED,
) -> pl.DataFrame:
    """Compare each trial's stored translations with the baseline's, by paired bootstrap.

    Only trials with the baseline's seed and reference translations are compared. The baseline consists of the
    trials with levels such as `model=sa`. With `tuned`, the outputs of tuned decoding are compared, which the
    probes store. The result is a frame with a row for each trial with a baseline, and for each baseline. Its
    columns are the levels, BLEU, the mean over the resamples with half the width of the 95 % interval, the
    difference from the baseline, and the p-value of the difference. The last two are null for a baseline.
    Raises StudyError for unknown levels. Raises StatisticsError if no baseline has outputs for the same
    lines, or if several baselines have the same seed.
    """
    chosen = select_trials(study, baseline, "--baseline")
    translations = _translations(study, store, tuned=tuned)
    baselines: dict[tuple[int, tuple[str, ...]], _Translation] = {}
    for each in translations:
        if each.trial.id in chosen and baselines.setdefault(each.pairing, each) is not each:
            raise StatisticsError(
                f"expected one baseline with seed {each.trial.settings.seed}, got several: "
                f"add levels to {', '.join(baseline)}"
            )
    if not baselines:
        raise StatisticsError(
            f"study {study.name}: expected {'tuned' if tuned else 'kept'} outputs of {', '.join(baseline)} "
            f"in {store.place}, got none"
        )
    rows: list[tuple[object, ...]] = []
    for pairing, first in baselines.items():
        group = [first, *(each for each in translations if each.pairing == pairing and each is not first)]
        outputs = [each.outputs for each in group]
        scores = paired_bootstrap(
            outputs[0], outputs[1:], first.references, tokenizer=tokenizer, samples=samples, seed=seed
        )
        rows += [
            _row(each, score, None if each is first else (first, scores[0]))
            for each, score in zip(group, scores, strict=True)
        ]
    found = pl.DataFrame(rows, schema=_SCORES, orient="row")
    levels = study_levels(study, stored_outcomes(store, study))
    return levels.join(found, on="trial", how="inner", maintain_order="left")


def _row(
    one: _Translation, score: BootstrapScore, compared: tuple[_Translation, BootstrapScore] | None
) -> tuple[object, ...]:
    row = (one.trial.id, score.bleu, score.mean, score.half_width)
    if compared is None:
        return (*row, None, None, None)
    baseline, base_score = compared
    return (*row, score.bleu - base_score.bleu, score.p, baseline.trial.id)


def _translations(study: Study, store: Store, *, tuned: bool) -> list[_Translation]:
    kept = store.outputs([trial.id for trial in study.trials], tuned=tuned)
    lines = kept.partition_by("trial", as_dict=True)
    return [
        _Translation(
            trial=trial, references=tuple(found["reference"].to_list()), outputs=found["output"].to_list()
        )
        for trial in study.trials
        if (found := lines.get((trial.id,))) is not None
    ]
