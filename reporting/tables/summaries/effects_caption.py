"""The words around a table of effects: what its numbers are, how they were found, what could be found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....studies.catalog.metrics import Metric
from ....studies.planning.probe_targets import probe_command
from ....studies.presentation.effects import EffectsSpec
from ....studies.presentation.metric_words import difference_sentence
from ....studies.presentation.selection import describe_levels, fixed_levels, selected_levels
from ....studies.schema.factors import SEED
from ....studies.schema.level_names import one_line
from ....studies.schema.settings import Level
from ....studies.study import Study
from ....studies.text.units import degrees_of_freedom, plural
from ...factor_models import StudyModel
from ...observations import selected_trials
from ...outcomes import omitted_trials
from ...statistics.decided_differences import SIGNIFICANCE_LEVEL
from ...statistics.factor_effects import TermEffect
from ...statistics.factor_terms import Term
from ...statistics.power import detectable
from ..captions import joined_titles
from ..differences import detectable_words, number_range


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectsColumn:
    """What is found for one metric, with its effects by term."""

    metric: Metric
    found: StudyModel
    effects: Mapping[Term, TermEffect]

    @property
    def tests(self) -> int:
        """For how many tests p is corrected."""
        return sum(effect.p is not None for effect in self.effects.values())

    @property
    def tells_of_interactions(self) -> bool:
        """Whether any interaction is told, or what one cannot be told apart from."""
        return any(
            effect.contrasts or effect.aliases for term, effect in self.effects.items() if len(term) > 1
        )

    @property
    def detectable(self) -> list[float]:
        """The difference between two levels that is found with a chance of 80 %, of each factor of two."""
        error = self.found.model.error if self.found.model else None
        errors = [
            effect.contrasts[0].error
            for term, effect in self.effects.items()
            if len(term) == 1 and len(effect.contrasts) == 1
        ]
        known = [each for each in errors if each is not None]
        if error is None or not known or not self.tests:
            return []
        return [detectable(each, error.degrees, SIGNIFICANCE_LEVEL / self.tests) for each in known]


def effects_sentences(
    spec: EffectsSpec,
    study: Study,
    factors: Mapping[str, tuple[Level, ...]],
    columns: Sequence[EffectsColumn],
) -> tuple[str, ...]:
    """Every sentence of the caption."""
    titles = dict.fromkeys(column.metric.title for column in columns)
    subject = one_line(spec.caption or joined_titles(tuple(titles))).removesuffix(".")
    cells = columns[0].found.observations.cells
    seeds = len(selected_levels(spec.select, study.factors)[SEED])
    trials = selected_trials(study, spec.select)
    fixed = fixed_levels([trial.levels for trial in trials], (*factors, SEED), study.design)
    difference = difference_sentence(
        [column.metric for column in columns], [trial.settings for trial in trials]
    )
    at = f", at {describe_levels(fixed)}" if fixed else ""
    size = f"{plural(len(factors), 'factor')} over {plural(cells, 'cell')}{at}"
    return (
        f"{subject}: effects of {size}, with {f'{seeds} seeds as blocks' if seeds > 1 else 'one seed'}.",
        *([difference] if difference else []),
        *_what_effects_are(spec, factors, columns),
        *_how_found(columns),
        *_shares(columns),
        *_left_out(study, columns),
    )


def _what_effects_are(
    spec: EffectsSpec, factors: Mapping[str, tuple[Level, ...]], columns: Sequence[EffectsColumn]
) -> Iterator[str]:
    """What is subtracted from what, over what."""
    counts = [len(levels) for levels in factors.values()]
    if 2 not in counts:
        what = "each level less the mean of all"
    elif max(counts) == 2:
        what = "the second level less the first"
    else:
        what = "of two levels the second less the first, of more each less the mean of all"
    yield f"Effect of a factor: {what}; all levels of the others count alike."
    told = [term for column in columns for term in column.effects if len(term) > 1]
    if told and not any(column.tells_of_interactions for column in columns):
        count = plural(len(set(told)), "interaction")
        yield f"The cells cannot tell any of {count}, which are taken to be nothing."
    elif told and counts.count(2) > 1:
        yield (
            "Effect of an interaction of two levels with two:"
            " by how much more the one factor does at the second level of the other than at its first."
        )
    if not spec.interactions and len(factors) > 1:
        yield "Interactions are taken to be nothing."


def _how_found(columns: Sequence[EffectsColumn]) -> Iterator[str]:
    """What error intervals and tests have, and what they could have found."""
    errors = [column.found.model.error for column in columns if column.found.model]
    known = [error for error in errors if error is not None]
    if not known:
        yield "With nothing that tells the noise there are no intervals and no tests."
        return
    degrees = degrees_of_freedom(sorted({error.degrees for error in known}))
    within = all(error.is_within_cells for error in known)
    source = "the noise within cells" if within else "what the effects leave over"
    tests = sorted({column.tests for column in columns if column.tests})
    found = [(column.metric, each) for column in columns for each in column.detectable]
    limits = detectable_words(found, " between two levels")
    yield "In brackets: 95 % interval, of each effect by itself."
    yield (
        f"p: F test by the variance of {source}, {degrees};"
        f" Holm over {number_range(tests)} test{'' if tests == [1] else 's'} of the column"
        f"{limits}."
    )


def _shares(columns: Sequence[EffectsColumn]) -> Iterator[str]:
    """What shares are of, and whether they add up."""
    found = [(column.found.model.shares, column.effects.values()) for column in columns if column.found.model]
    if not found:
        return
    sums = [
        sum(share or 0.0 for share in (shares.seeds, shares.rest, shares.noise))
        + sum(effect.share or 0.0 for effect in effects)
        for shares, effects in found
    ]
    unequal = any(abs(total - 1) > 0.0005 for total in sums if total)
    yield "Share: η², of the sum of squares of all values" + (
        "; as not all combinations have as many values, shares do not add up to 100 %." if unequal else "."
    )


def _left_out(study: Study, columns: Sequence[EffectsColumn]) -> Iterator[str]:
    """The trials without a value, of each metric or of all alike; and trials that stand for several cells."""
    observations = [column.found.observations for column in columns]
    told = [
        list(omitted_trials(each.gaps, len(each.values) + each.gaps.total(), probe_command(study.name)))
        for each in observations
    ]
    if all(each == told[0] for each in told):
        yield from told[0]
    else:
        for column, sentences in zip(columns, told, strict=True):
            yield from (f"{column.metric.name}: {sentence}" for sentence in sentences)
    first = observations[0]
    planned = len(first.values) + first.gaps.total()
    if planned > len(first.trials):
        count = planned - len(first.trials)
        yield f"{count} cells and seeds have the trial of another, as if it were theirs."
