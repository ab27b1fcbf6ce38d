"""The members of a population as a store has them: their trials, and what follows from how they ended."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from statistics import fmean

import polars as pl

from ..population import Generation, PopulationMember, breed, write_courses
from ..resolve.trial import Trial
from ..schema.settings import Level
from ..study import Study
from .trial_values import row_value


def generations(study: Study, outcomes: pl.DataFrame) -> tuple[Generation, ...]:
    """The generations of a population that the store's latest attempts decide, the last one maybe begun."""
    search, fidelity = study.search, study.fidelity
    assert search is not None, "a population is a search"
    assert fidelity is not None, "a population has generations"
    objective, losses = search.objectives[0], dict[str, float]()
    ended = outcomes.filter(pl.col("status").is_in(["done", "failed"]))
    for row in ended.select("trial", "status", "metrics").iter_rows(named=True):
        value = row_value(row, objective.name) if row["status"] == "done" else math.nan
        losses[row["trial"]] = objective.loss(value) if math.isfinite(value) else math.inf

    def loss(generation: int, member: PopulationMember) -> float | None:
        found = [losses.get(trial.id) for trial in member_trials(study, generation, member)]
        return None if None in found else fmean(each for each in found if each is not None)

    return breed(
        study.dimensions,
        members=search.trials - bool(study.baseline),
        generations=len(fidelity.rungs),
        seed=search.seed,
        loss=loss,
    )


def member_trials(study: Study, generation: int, member: PopulationMember) -> tuple[Trial, ...]:
    """The trials of a member in a generation, one for each seed and all that the search is across."""
    key = json.dumps([generation, *map(dict, member.history)])
    if key not in study.members:
        study.members[key] = study.point_trials(member_levels(study, member), generation)
    return study.members[key]


def member_levels(study: Study, member: PopulationMember) -> dict[str, Level]:
    """The values of a member as those of a point: the course of each."""
    assert study.fidelity is not None, "a population has generations"
    return write_courses(member.history, study.fidelity.rungs)


def population_trials(study: Study, outcomes: pl.DataFrame) -> list[Trial]:
    """The trials of all generations that can be known, those of the baseline first."""
    found = [*(study.point_trials(study.baseline) if study.baseline else ())]
    for number, generation in enumerate(generations(study, outcomes)):
        found += [trial for each in generation.members for trial in member_trials(study, number, each)]
    return list({trial.id: trial for trial in found}.values())


def with_generations(study: Study, outcomes: pl.DataFrame) -> Study:
    """The population with the trials of all generations that can be known."""
    return replace(study, trials=tuple(population_trials(study, outcomes)))


def population_outcomes(study: Study, outcomes: pl.DataFrame) -> pl.DataFrame:
    """The outcomes of a population's trials, whatever study ran them, with the levels that it has."""
    factors = {trial.id: json.dumps(dict(trial.levels)) for trial in population_trials(study, outcomes)}
    found = outcomes.filter(pl.col("trial").is_in(list(factors)))
    return found.with_columns(factors=pl.col("trial").replace_strict(factors, return_dtype=pl.String))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a population is, in words, and whether it ends since all members of a generation failed."""

    words: str = ""
    has_died_out: bool = False


def population_standing(study: Study, outcomes: pl.DataFrame) -> Standing:
    """The generation that is under way, or the last one; nothing for any other study."""
    if not study.is_population or study.fidelity is None:
        return Standing()
    found, count = generations(study, outcomes), len(study.fidelity.rungs)
    died = found[-1].is_whole and not found[-1].copies()[1]
    words = f"generation {len(found)} of {count}"
    return Standing(words=f"{words}, all of whose members failed" if died else words, has_died_out=died)


def passed_trials(study: Study, outcomes: pl.DataFrame) -> list[str]:
    """The trials that a population has trained and that no member goes on from any more.

    Of a population that keeps the last states there are none, and of any other study.
    """
    if study.keep_checkpoints or not study.is_population:
        return []
    found = generations(study, outcomes)
    lasts = [number for number, each in enumerate(found) if each.is_whole and each.copies()[1]]
    passed = range(max(lasts, default=0))
    trials = {
        trial.id
        for number in passed
        for each in found[number].members
        for trial in member_trials(study, number, each)
    }
    own = outcomes.filter((pl.col("study") == study.name) & pl.col("trial").is_in(list(trials)))
    return own["trial"].to_list()


def member_results(study: Study, outcomes: pl.DataFrame) -> dict[str, bool]:
    """Of trials of a population whether each is a result of the last whole generation, or of one that ended.

    Others are left out: those that a member went on from, those of a generation that is not whole, unless it
    is the first, and the baseline's as long as its members have fewer epochs.
    """
    found = generations(study, outcomes)
    last = max((number for number, each in enumerate(found) if each.is_whole), default=0)
    results = {
        trial.id: number == last
        for number in range(last + 1)
        for place, member in enumerate(found[number].members)
        if number == last or place not in {each.parent for each in found[number + 1].members}
        for trial in member_trials(study, number, member)
    }
    is_over = study.fidelity is not None and last == study.fidelity.top and found[last].is_whole
    baseline = study.point_trials(study.baseline) if study.baseline and is_over else ()
    return results | {trial.id: True for trial in baseline}
