"""The notes of a plan: what a user must know before a study runs, beside the costs of its models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from ..grammar.vocabulary.spec import uncounted_kernels
from ..storage import Store
from .claims.interim_tests import looks
from .late_changes import describe_max_seeds
from .plan_text import NO_ESTIMATE
from .planning.data_facts import Locate, data_notes
from .planning.reused_trials import describe_stale, find_stale_trials
from .planning.status import timed_devices
from .resolve.training_budget import budget_note, unreached_note
from .resolve.trial import Trial, first_of_each_kind
from .schema.factors import level_name
from .schema.search_settings import usual_direction
from .schema.settings import TrialSettings, read_recipe
from .searches.points import comparison_note
from .searches.words import rung_costs, rung_words, search_words, space_words
from .study import Study
from .text.errors import command_line
from .text.units import WIDTH, abbreviate_all, format_bytes, listed, plural

if TYPE_CHECKING:
    from .plan import Plan

_STALE = "a run trains them again, --keep-stale reuses them"

_MAX_ALIASES = 8

_SHOWN_STATES = 10_000_000
"""The bytes of last states from which a plan mentions them; smaller ones fill no disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNote:
    """A note of a plan. `label` is its subject, such as "memory". Lines after an empty one are a table."""

    label: str
    text: str


def plan_notes(
    plan: Plan,
    store: Store,
    outcomes: pl.DataFrame,
    *,
    elsewhere: int,
    labelled: Sequence[tuple[str, TrialSettings]],
    locate: Locate,
) -> Iterator[tuple[str, str]]:
    """Yield the notes of a plan, in their order, as pairs of a label and a text. Some texts are empty.

    `outcomes` are those in the store, and `elsewhere` is the number of a search's points that only other
    studies have trained. `labelled` has the label and the settings of each model.
    """
    study = plan.study
    known = plan.estimate.seconds is not None
    yield "in all", f"{plan.estimate.words} of training, one trial after the other" if known else NO_ESTIMATE
    yield from data_notes(study, labelled, locate)
    yield "design", study.design.explain()
    yield "order", "trials start in the order of the file" if study.header.order == "file" else ""
    aliases = study.design.alias_words()
    more = f"; and {len(aliases) - _MAX_ALIASES:,} more" if len(aliases) > _MAX_ALIASES else ""
    yield "alias", "; ".join(aliases[:_MAX_ALIASES]) + more
    if study.header.max_seeds is not None and study.claims:
        counts = looks(len(study.seeds), study.header.max_seeds)
        added = "which `study run --until-decided` adds as needed"
        yield "seeds", f"claims are tested at {listed(counts)} seeds, {added}"
    yield "note", _shared_trials(study)
    yield "note", describe_max_seeds(study, store)
    yield budget_note(study.template.tables["train"], (each.settings for each in study.trials))
    yield "note", unreached_note(each.common for each in first_of_each_kind(study.examples))
    if timed := timed_devices(study, outcomes):
        stored = "; ".join(f"{plural(count, 'trial')} on {on}" for on, count in timed.items())
        again = command_line("study", "forget", study.name)
        yield "stored", f"{stored}: they count only on that device; to train on another, first run {again}"
    for each in study.expansions.values():
        yield from each.notes(study, plan)
    costliest: dict[str, list[str]] = {}
    for what, at in (("parameters", "parameters_at"), ("FLOPs/step", "flops_at"), ("memory", "memory_at")):
        levels = {getattr(model, at) for model in plan.models} - {""}
        costliest.setdefault(" or ".join(sorted(levels)), []).append(what)
    parts = "; ".join(f"{listed(several)} at {at}" for at, several in costliest.items() if at)
    yield "costs", f"the table has the largest of each model: {parts}" if parts else ""
    if plan.memory is not None:
        label, held = plan.memory
        weights = f"{format_bytes(held.weights)} of weights, their gradients and the optimiser"
        activations = f"{format_bytes(held.activations)} of activations at {plural(held.tokens, 'token')}"
        total = f"{format_bytes(held.total)}, ± 20 %: {weights}, {activations}"
        yield "memory", f"a step of {abbreviate_all([label], WIDTH // 2)[0]} holds {total}"
    recipes = dict.fromkeys(each.trial.common.model.recipe for each in plan.trials)
    kernels = (uncounted_kernels(read_recipe(each).root) for each in recipes)
    yield "flops", "; ".join(dict.fromkeys(filter(None, kernels)))
    yield from _notes_on_states(plan)
    yield from _search_notes(study, elsewhere)
    stale, own = find_stale_trials(study, outcomes), {each.trial.id for each in plan.trials}
    if plan.subset_size is not None:
        stale = {trial: each for trial, each in stale.items() if trial in own}
    yield "stale", f"{describe_stale(stale)}; {_STALE}" if stale else ""
    for model in plan.over_budget:
        yield "over", f"{model.label}: {model.excess}; {plural(model.trials, 'trial')} not run"
    for limit in plan.reach_limits:
        yield "note", str(limit)


def _notes_on_states(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield notes on the last states of trainings: which trials resume from them, and what they take."""
    resumed = plural(len(plan.resumed_from), "trial")
    yield "on", f"{resumed} resumed from the end of an earlier training" if plan.resumed_from else ""
    anew = Counter(each.not_resumed for each in plan.trials if each.not_resumed)
    begun = (
        f"{plural(count, 'trial')} cannot resume from shorter ones: {why}" for why, count in anew.items()
    )
    yield "anew", "; ".join(begun)
    if plan.last_states >= _SHOWN_STATES:
        up_to = "up to" if plan.study.search else "about"
        kept = f"the last states of trainings take {up_to} {format_bytes(plan.last_states)} in the store"
        yield "disk", f"{kept}; longer trainings resume from them (keep_checkpoints = false keeps none)"


def _shared_trials(study: Study) -> str:
    """Return a sentence on levels that only differ in their spelling, or "" if no cells share a trial."""
    first: dict[str, Trial] = {}
    for cell in study.cells:
        other = first.setdefault(cell.id, cell)
        if other is not cell:
            names = [name for name in cell.levels if cell.levels[name] != other.levels[name]]
            labels = (
                ", ".join(f"{name}={level_name(each.levels[name])}" for name in names)
                for each in (other, cell)
            )
            return f"some cells have the same settings and share their trials, as {' and '.join(labels)}"
    return ""


def _search_notes(study: Study, elsewhere: int) -> Iterator[tuple[str, str]]:
    if (search := study.search) is None:
        return
    yield "search", search_words(study, elsewhere)
    if search.rungs.rungs:
        yield "rungs", rung_words(search.rungs.name, rung_costs(study))
    yield "space", space_words(study)
    yield "note", comparison_note(study)
    population, points = getattr(search.settings.sampler, "population", 0), search.settings.trials
    if points < 2 * population:
        few = f"{plural(points, 'point')} are fewer than two populations of {population:,}"
        yield "note", f"{few}, the first of which is random: set a smaller population in [search] sampler"
    for goal in search.settings.objectives:
        if goal.name.startswith("test_"):
            yield "note", f"a search by {goal.name} fits its points to the test split; search by a dev metric"
        if usual_direction(goal.name) not in (goal.direction, None):
            sought, worse = ("highest", "higher") if goal.maximise else ("lowest", "lower")
            yield "note", f"the search looks for the {sought} {goal.name}, but a {worse} one is usually worse"
