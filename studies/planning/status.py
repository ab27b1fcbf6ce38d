"""The status of a study: how its trials have ended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import polars as pl

from ...plugins import forget_at_unload, has_plugins
from ...storage import CheckpointNote, Store
from ...storage.rows import TRIALS, has_trial
from ..resolve.trial import Kind, Trial
from ..schema.factors import SEED, first_line
from ..schema.search_settings import NONE
from ..schema.settings import Level
from ..study import Study
from ..text.units import plural

if TYPE_CHECKING:
    from ..resolve.search_source import SearchSource
from .reused_trials import StaleTrial, describe_stale, find_stale_trials, reusable_outcomes
from .trials_to_run import (
    left_within_budget,
    trials_missing_weights,
    unfinished_trials,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyStatus:
    """The progress of a study: its trials and how they ended.

    `stored` has the status of each outcome by trial id, and `started` the started trials. `progress` has
    their progress, the latest first. Trials in `missing_weights` are done, but would be trained again
    for their weights. `failure_reasons` counts first lines, the most frequent first. `added` has the status
    of each stored trial of an added seed. `total` and `stored` leave these trials out, and `left` counts
    those that are being added. `spent` names the budget or space that a search has used up, else it is None;
    then `left` counts only trials of points that have begun. `stale` are outcomes computed with other plug-in
    source, which do not count.
    """

    total: int
    left: int
    spent: str | None = None
    stored: Mapping[str, str] = field(default_factory=dict[str, str])
    added: Mapping[str, str] = field(default_factory=dict[str, str])
    started: Mapping[str, Trial] = field(default_factory=dict[str, Trial])
    progress: Mapping[str, CheckpointNote] = field(default_factory=dict[str, CheckpointNote])
    missing_weights: tuple[str, ...] = ()
    failure_reasons: tuple[tuple[str, int], ...] = ()
    stale: Mapping[str, StaleTrial] = field(default_factory=dict[str, StaleTrial])

    def __repr__(self) -> str:
        return f"<StudyStatus: {self.summary()}>"

    @property
    def counts(self) -> Counter[str]:
        """The number of outcomes with each status."""
        return Counter(self.stored.values())

    def summary(self) -> str:
        """Return a line of text with the number of trials of each status.

        The numbers of done and of remaining trials are always shown, other counts only above zero.
        """
        counts = self.counts
        parts = [f"{counts['done']:,} of {plural(self.total, 'trial')} done"]
        parts += [f"{counts[each]} {each}" for each in ("failed", "pruned", "incomplete") if counts[each]]
        parts += [f"{self.left} left" + (f", {len(self.started)} of them begun" if self.started else "")]
        if self.added:
            ended = Counter(self.added.values())
            counted = ", ".join(f"{count} {status}" for status, count in sorted(ended.items()))
            parts += [f"further seeds: {counted}"]
        if self.spent:
            parts += [f"its {self.spent} is exhausted"]
        if self.missing_weights:
            parts += [f"weights of {len(self.missing_weights)} not in the store"]
        if self.stale:
            parts += [describe_stale(self.stale)]
        return " · ".join(parts)


def stored_outcomes(store: Store, *studies: Study, probes: Collection[str] = ()) -> pl.DataFrame:
    """Return the valid attempt of each stored trial; those of searches among `studies` come first.

    The column `settings` is left out if no study needs it. Stored settings take most of the memory. They
    matter only for trials that another study or other source of plug-ins may have trained; a study knows the
    settings of its own trials.
    """
    needed = any(map(_needs_settings, studies))
    columns = [name for name in TRIALS if needed or name != "settings"]
    return store.trials(probes, columns, first=[study.name for study in studies if study.search is not None])


def _needs_settings(study: Study) -> bool:
    """Return whether the stored settings of trials are needed to find the outcomes of a study."""
    if study.search is not None:
        return has_plugins()
    return any(trial.common.code for trial in study.trials)


def study_status(
    study: Study,
    store: Store,
    outcomes: pl.DataFrame | None = None,
) -> StudyStatus:
    """Return the status of a study in a store.

    Without `outcomes`, read the latest attempts from the store.
    """
    outcomes = stored_outcomes(store, study) if outcomes is None else outcomes
    rows = study_outcomes(study, outcomes)
    statuses: dict[str, str] = dict(rows.select("trial", "status").iter_rows())
    of_added_seeds = {trial.id for trial in study.added}
    stored = {trial: status for trial, status in statuses.items() if trial not in of_added_seeds}
    unfinished, added = unfinished_of(study, store, statuses), dict[str, str]()
    started = {trial.id: trial for trial in unfinished}
    if study.search is None and study.later_seeds:
        later = study_outcomes(study.with_later_seeds(), outcomes).filter(~has_trial(stored))
        added = dict(later.select("trial", "status").iter_rows())
    counted = count_trials(study, rows, unfinished)
    notes = {trial: note for trial in started if (note := store.files.checkpoint_note(trial)) is not None}
    return StudyStatus(
        total=counted.total - len(of_added_seeds),
        left=counted.left,
        spent=_spent_words(study, counted),
        stored=stored,
        added=added,
        started=started,
        progress=dict(sorted(notes.items(), key=lambda each: each[1].saved_at, reverse=True)),
        missing_weights=trials_missing_weights(study, store, statuses),
        failure_reasons=count_failures(rows),
        stale=find_stale_trials(study, outcomes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCounts:
    """How many trials a study has, with added seeds, and how many of them remain to be trained.

    If a search `is_over_budget`, only trials of points that have begun remain.
    """

    total: int
    left: int
    is_over_budget: bool = False


def count_trials(study: Study, rows: pl.DataFrame, unfinished: Iterable[Trial]) -> TrialCounts:
    """Count the trials of a study and those that remain, incomplete ones included.

    `rows` are the study's outcomes. `unfinished` are the trials of a search that have none.
    """
    total = _total(study, rows)
    if study.search and (left := left_within_budget(study.search, rows, unfinished)) is not None:
        return TrialCounts(total=total, left=left, is_over_budget=True)
    ended = rows.filter(pl.col("status") != "incomplete")
    return TrialCounts(total=total, left=max(0, total - len(ended)))


def _total(study: Study, rows: pl.DataFrame) -> int:
    """Return how many trials a study has, including stored trials that its search did not plan.

    For a search, this number may exceed the planned one. The store may have fitting trials of other studies,
    points that were promoted and later overtaken, or a former baseline beside the present one.
    """
    if (search := study.search) is None:
        return study.total
    baseline = [trial.id for trial in search.baseline_trials]
    found = Counter(rungs_of(study, rows.filter(~pl.col("trial").is_in(baseline))))
    *lower, last = search.trials_by_rung
    planned = (*lower, last - len(baseline))
    return len(baseline) + sum(max(trials, found[rung]) for rung, trials in enumerate(planned))


def _spent_words(study: Study, counted: TrialCounts) -> str | None:
    """Return what a search has used up: `budget of 40 trainings`, `space of 2 points` or None."""
    if (search := study.search) is None:
        return None
    if counted.is_over_budget:
        return f"budget of {search.settings.budget.words()}" if search.settings.budget else None
    if counted.left or search.num_points >= search.settings.trials:
        return None
    return f"space of {plural(search.num_points, 'point')}"


def count_failures(outcomes: pl.DataFrame) -> tuple[tuple[str, int], ...]:
    """Count the failed trials by the first line of their reasons, the most frequent first."""
    failed = outcomes.filter(pl.col("status") == "failed")["reason"]
    return tuple(Counter(first_line(reason or "") for reason in failed).most_common())


def outcome_trials(study: Study, outcomes: pl.DataFrame) -> dict[str, Trial]:
    """Return the trials of a study that have an outcome, by id.

    If another study trained a trial, the trial has the levels of this study.
    """
    if study.search is None:
        ended = set(outcomes["trial"])
        return {trial.id: trial for trial in study.trials if trial.id in ended}
    rows = study_outcomes(study, outcomes).select("trial", "factors").iter_rows()
    found = (tried_trial(study, trial, json.loads(factors)) for trial, factors in rows)
    return {trial.id: trial for trial in found if trial is not None}


def study_outcomes(study: Study, outcomes: pl.DataFrame, *, all_seeds: bool = False) -> pl.DataFrame:
    """Return the outcomes of a study's trials, whichever study trained them.

    For a search, these are the outcomes of its baseline and of all points that it has begun. It copies the
    rows that another study has of them. Trials with other settings or seeds, of another space, or with other
    plug-in source are not included.

    With `all_seeds` the outcomes include further seeds of a search's points, such as the seeds of a former
    baseline.
    """
    if study.search is not None:
        return _own_outcomes(study, outcomes, all_seeds=all_seeds)
    return outcomes.filter(has_trial(trial.id for trial in study.trials))


def count_other_points(study: Study, outcomes: pl.DataFrame) -> int:
    """Return how many of a search's own outcomes its present file excludes.

    Their points are outside the space, or they have other settings, data or code. Pruned ones do not count.
    """
    own = outcomes.filter(pl.col("status") != "pruned", study=study.name)
    return len(own) - len(_tried(study, own, all_seeds=True))


def timed_devices(study: Study, outcomes: pl.DataFrame) -> dict[str, int]:
    """Count a study's outcomes with a time budget, by device. The budget is `[train] seconds`."""
    if "seconds" not in study.template.tables["train"]:
        return {}
    own = study_outcomes(study, outcomes)
    trials = outcome_trials(study, own).values()
    timed = [trial.id for trial in trials if trial.settings.train.seconds is not None]
    return count_devices(own.filter(pl.col("trial").is_in(timed)))


def count_devices(outcomes: pl.DataFrame) -> dict[str, int]:
    """Return the number of these outcomes for each device."""
    return dict(outcomes.group_by("device").len().sort("device").iter_rows())


def outcomes_elsewhere(study: Study, outcomes: pl.DataFrame) -> pl.DataFrame:
    """Return the outcomes of points of a search that only other studies have trained; none for a grid.

    The column `factors` has the search's levels.
    """
    if study.search is None:
        return outcomes.clear()
    own = _own_outcomes(study, outcomes, all_seeds=False)["trial"].to_list()
    return reusable_outcomes(study, outcomes.filter(~pl.col("trial").is_in(own)))


def count_points(study: Study, outcomes: pl.DataFrame) -> int:
    """Count the points of a search among outcomes that have its levels in the column `factors`."""
    levels = map(json.loads, outcomes["factors"])
    return len({tuple(map(each.get, study.dimensions)) for each in levels})


def _own_outcomes(study: Study, outcomes: pl.DataFrame, *, all_seeds: bool) -> pl.DataFrame:
    may_prune = _search_of(study).settings.scheduler.name != NONE  # it may have had a scheduler before
    is_own = pl.col("study") == study.name
    rows = outcomes.filter((pl.col("status") != "pruned") | (is_own & may_prune))
    own = _tried(study, rows.filter(is_own), all_seeds=all_seeds)
    others = rows.filter(~pl.col("trial").is_in(own["trial"].to_list()))
    return pl.concat([own, _tried(study, _of_baseline(study, others), all_seeds=all_seeds)])


def _of_baseline(study: Study, outcomes: pl.DataFrame) -> pl.DataFrame:
    """Return the outcomes of a search's baseline, which the search uses before it has proposed anything."""
    levels = {trial.id: json.dumps(dict(trial.levels)) for trial in _search_of(study).baseline_trials}
    found = outcomes.filter(has_trial(levels))
    return found.with_columns(factors=pl.Series([levels[trial] for trial in found["trial"]], dtype=pl.String))


def _tried(study: Study, outcomes: pl.DataFrame, *, all_seeds: bool) -> pl.DataFrame:
    """Return the outcomes of this search's points, each trained with one of the point's seeds."""
    search, kept = _search_of(study), list[bool]()
    for trial, factors in outcomes.select("trial", "factors").iter_rows():
        levels = json.loads(factors)
        point = tried_point(study, trial, levels)
        kept.append(point is not None and (all_seeds or levels.get(SEED) in search.seeds_of(point)))
    return outcomes.filter(kept)


def tried_point(study: Study, trial: str, levels: Mapping[str, Level]) -> dict[str, Level] | None:
    """Return the search point of a stored trial, or None."""
    found = tried_trial(study, trial, levels)
    return None if found is None else _search_of(study).values_of(found.levels)


def tried_trial(study: Study, trial: str, levels: Mapping[str, Level]) -> Trial | None:
    """Return the search's trial with these levels if its id is `trial`, else None.

    It is None if the levels belong to another space, or if the trial's settings differ from this study's.
    """
    seed = levels.get(SEED, 0)
    first = _first_trial(study, json.dumps({name: each for name, each in levels.items() if name != SEED}))
    if first is None or not isinstance(seed, int):
        return None
    kind = Kind(first.common)
    found = Trial(study=study.name, levels={**first.levels, SEED: seed}, settings=kind, seed=seed)
    return found if found.id == trial else None


@lru_cache(maxsize=65536)
def _first_trial(study: Study, levels_text: str) -> Trial | None:
    """Return the search's trial with the seed 0 and these levels, or None if they belong to another space."""
    search, levels = _search_of(study), json.loads(levels_text)
    try:
        values = search.read_point(levels)
        at = next((each for each in search.across if each.items() <= levels.items()), None)
        if values is None or at is None:
            return None
        if (rung := search.rungs.rung_of(levels)) is not None:
            at = {**at, **search.rungs.level(rung)}
        return search.trial_of(values, at=at)
    except (ValueError, TypeError):  # the file has other settings now, and these values no longer fit them
        return None


forget_at_unload(_first_trial.cache_clear)


def rungs_of(study: Study, outcomes: pl.DataFrame) -> list[int]:
    """Return the rung (stage) of each outcome of a search: the last one if it is unknown."""
    rungs = _search_of(study).rungs
    if not rungs.rungs:
        return [0] * len(outcomes)
    found = (rungs.rung_of(json.loads(factors)) for factors in outcomes["factors"])
    return [rungs.top if rung is None else rung for rung in found]


def _search_of(study: Study) -> SearchSource:
    assert study.search is not None, "only a search has points"
    return study.search


def unfinished_of(study: Study, store: Store, stored: Collection[str]) -> list[Trial]:
    """Return the trials of a study that have begun and are not `stored`."""
    if study.search is None:
        begun = store.files.trials_with_checkpoint(trial.id for trial in study.trials).difference(stored)
        return [each for each in study.trials if each.id in begun]
    return [
        each
        for each in unfinished_trials(store.files.checkpoints_folder(), study.name)
        if each.id not in stored and tried_trial(study, each.id, each.levels) is not None
    ]
