"""Stored trials that a study can reuse instead of its own, and why it cannot reuse others.

They are from older plug-in source, or belong to another study. A trial of another study fits a search if a
point of its space has the trial's settings. The values of most dimensions are read from the trial's recipe.
The values of dimensions that fill a whole setting are read from that setting. The search's own trial with
these values must then have the same id.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ...errors import ActivememError, check_arguments, texts_fault
from ...grammar import Recipe, RecipeError, parse, render
from ...grammar.dimensions import representative_values
from ...grammar.nodes import ChoiceDimension, HoleNode, IntegerDimension, Node, RealDimension, walk
from ...grammar.space import find_derivation
from ...plugins import has_plugins
from ...storage import Store, open_store, store_fault
from ..resolve.result_changes import changes_of
from ..resolve.trial import (
    Trial,
    changed_code,
    code_owner,
    settings_from_json,
    settings_to_json,
    tables_from_json,
    trial_id,
    with_code,
)
from ..schema.factors import HOLE_PATTERN
from ..schema.search import as_listed, contains
from ..schema.settings import RECIPE_PATH, Level
from ..study import Study, study_fault
from ..text.toml_positions import KeyPath
from ..text.units import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleTrial:
    """A finished trial whose plug-in has changed since.

    `stored` is the id in the store; `now` is the id that the trial has with the present source. `changes`
    maps each plug-in to its old and new source; the old source is "" if it was not recorded.
    """

    stored: str
    now: str
    changes: Mapping[str, tuple[str, str]]


def find_stale_trials(study: Study, outcomes: pl.DataFrame) -> dict[str, StaleTrial]:
    """Return stored trials that used another version of a plug-in, by the ids that they would have now.

    The store has no result with the present plug-in source for these trials. If several trials match, the
    trial that ended last counts. These trials are not outcomes of the study.
    """
    if not has_plugins():
        return {}
    done = outcomes.filter(status="done")
    if study.search is None:
        if not (wanted := {trial.id: trial for trial in study.trials if trial.settings.code}):
            return {}
        recipes = {trial.settings.model.recipe for trial in wanted.values()}
        done = done.filter(pl.col("recipe").is_in(list(recipes)))
    else:
        wanted, done = None, done.filter(pl.col("study") == study.name)
    if done.is_empty():
        return {}
    here, found = set(outcomes["trial"]), dict[str, StaleTrial]()
    for trial, text in done.sort("finished").select("trial", "settings").iter_rows():
        if changes := changed_code(text):
            with suppress(ValueError):  # the settings have keys that no longer exist
                settings = settings_from_json(text)
                if changes_of(settings) and trial_id(settings) != trial:
                    continue  # from before a change of results
                now = trial_id(with_code(settings))
                if now not in here and (wanted is None or now in wanted):
                    found[now] = StaleTrial(stored=trial, now=now, changes=changes)
    return found


def keep_stale_trials(
    study: Study, store: Store | str | Path, trials: Collection[str] | None = None
) -> dict[str, StaleTrial]:
    """Keep the stored results of trials although their plug-ins were edited.

    The edits must not change any result. The source of a plug-in is part of a trial's id. So each outcome is
    copied to the id that the trial has now; the rows still record the original source. Return the copied
    trials by current id, also of seeds that were added later. `trials` restricts them to these current ids.
    Trials that another process is training are skipped.
    """
    check_arguments(
        study_fault(study),
        store_fault(store),
        None if trials is None else texts_fault("trials", trials, "[study.trials[0].id]"),
    )
    store = open_store(store)
    found = find_stale_trials(study.with_later_seeds(), store.trials())
    wanted = {now: each for now, each in found.items() if trials is None or now in trials}
    return {now: each for now, each in wanted.items() if store.upkeep.copy_outcome(each.stored, now)}


def describe_stale(stale: Mapping[str, StaleTrial]) -> str:
    """Describe how many stored trials used another version of a plug-in, and name the plug-ins."""
    changes = [both for each in stale.values() for both in each.changes.values()]
    changed, is_recorded = {code_owner(now) for _, now in changes}, any(then for then, _ in changes)
    are = "is" if len(stale) == 1 else "are"
    trials, names = plural(len(stale), "stored trial"), ", ".join(sorted(changed))
    why = "other versions of the code" if is_recorded else "before trial ids contained the code"
    return f"{trials} {are} from {why} ({names})"


class FittingTrials:
    """Lookup of stored trials, of any study, that a search can reuse."""

    def __init__(self, study: Study) -> None:
        assert study.search is not None, "only a search reuses trials of other points"
        self._study, self._search, self._space = study, study.search, RecipeSpace(study)
        ends = self._search.trials_at_ends()
        self._tasks = {trial.settings.task.name for trial in ends}
        first, *others = (_plain_keys(json.loads(settings_to_json(trial.settings))) for trial in ends)
        apart = {RECIPE_PATH, *(path[:2] for path in study.template.holes)}
        self._fixed = {
            path: value
            for path, value in first.items()
            if path[0] != "code" and path not in apart and all(each.get(path) == value for each in others)
        }

    def find(self, row: Mapping[str, Any]) -> Trial | None:
        """Return the trial of this search whose result is in the row of a done trial, or None."""
        if row["task"] not in self._tasks:
            return None
        try:
            stored = _plain_keys(tables_from_json(row["settings"]))
            # None of an earlier version is a default now
            if any(stored.get(path) not in (None, value) for path, value in self._fixed.items()):
                return None
            settings = settings_from_json(row["settings"])
            recipe = self._space.values(parse(settings.model.recipe))
        except (ActivememError, ValueError, KeyError):  # a row of an earlier version, or with other plug-ins
            return None
        values = None if recipe is None else {**recipe, **self._other_values(settings.model_dump())}
        if values is None:
            return None
        try:
            known = {name: values[name] for name in self._search.choose(lambda name, _: values[name])}
            trials = [self._search.trial_of(known, settings.seed, at) for at in self._search.across]
        except (ValueError, KeyError):  # a value is outside its dimension, or no value is known
            return None
        return next((trial for trial in trials if trial.id == row["trial"]), None)

    def _other_values(self, settings: Mapping[str, Any]) -> dict[str, Level]:
        found: dict[str, Level] = {}
        for path, names in self._study.template.holes.items():
            if path == RECIPE_PATH or not HOLE_PATTERN.fullmatch(self._study.template.texts[path]):
                continue
            value: Any = settings
            for key in path:
                value = value.get(key) if isinstance(value, Mapping) else None
            dimension = self._search.dimensions.get(names[0])
            if dimension is not None and isinstance(value, Level) and contains(dimension, value):
                found[names[0]] = as_listed(dimension, value)
        return found


def _plain_keys(settings: Mapping[str, Any]) -> dict[KeyPath, Any]:
    tables = {name: table for name, table in settings.items() if isinstance(table, Mapping)}
    inside = ((name, key, value) for name, table in tables.items() for key, value in table.items())
    return {(name, key): value for name, key, value in inside if not isinstance(value, Mapping)}


def reusable_outcomes(study: Study, outcomes: pl.DataFrame) -> pl.DataFrame:
    """Return the stored rows that a search can reuse, with the search's levels in the column `factors`.

    For each point there are rows for all of its seeds, or none.
    """
    search, trials = study.search, FittingTrials(study)
    assert search is not None, "only a search reuses trials of other points"
    others = outcomes.filter(status="done")
    points: dict[str, list[Trial]] = {}
    for row in others.filter(pl.col("seed").is_in(study.seeds)).iter_rows(named=True):
        if (trial := trials.find(row)) is not None:
            values = search.values_of(trial.levels)
            points.setdefault(json.dumps(values), []).append(trial)
    whole = [
        each
        for several in points.values()
        if len({trial.id for trial in several}) >= search.count_trials(several[0].levels)
        for each in several
    ]
    factors = {trial.id: json.dumps(dict(trial.levels)) for trial in whole}
    found = others.filter(pl.col("trial").is_in(list(factors)))
    return found.with_columns(factors=pl.col("trial").replace_strict(factors, return_dtype=pl.String))


class RecipeSpace:
    """All recipes that a search can choose.

    `pattern` describes them: it is the study's recipe, with a dimension of the search in place of each hole.
    It is None if a dimension cannot be in one of these places. `places` has the name of each of its
    dimensions, in the order of its text.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._written = study.template.expand(study.template.texts[RECIPE_PATH])
        self._levels = {
            name: levels[0] for name, levels in study.factors.items() if name not in study.dimensions
        }
        self.pattern: Recipe | None = None
        self.places: list[str] = []
        with suppress(RecipeError):  # a dimension cannot stand in the place of a hole
            own = iter([name for name, _ in self._written.dimensions])
            self.places = list(self._names(self._written.root, own))
            self.pattern = self._filled()

    def values(self, recipe: Recipe) -> dict[str, Level] | None:
        """Return the value of each search dimension for which the study's recipe becomes this recipe.

        Return None if the recipe is not in the space.
        """
        if self.pattern is None:
            return None
        found = find_derivation(self.pattern.root, recipe.root)
        if found is None:
            return None
        values: dict[str, Level] = {}
        for place, (_, value) in found.items():
            name = self.places[place]
            dimension = self._study.dimensions[name]
            is_choice = isinstance(dimension, ChoiceDimension)
            level = representative_values(dimension)[int(value)] if is_choice else value
            if values.setdefault(name, level) != level:
                return None
        return values

    def _filled(self) -> Recipe:
        dimensions = {name: render(each) for name, each in self._study.dimensions.items()}
        fillings = {**self._levels, **dimensions, **self._study.template.fragments}
        recipe = self._written
        # a filling may contain holes itself, so they are filled again, at most once for each name
        for _ in range(len(fillings)):
            recipe = recipe.fill({name: fillings[name] for name in recipe.holes if name in fillings})
        return recipe

    def _names(self, root: Node, own: Iterator[str]) -> Iterator[str]:
        """Yield the names of the search's dimensions, in the order of the recipe's text.

        A hole's own dimension comes before the dimensions inside the texts that may fill it. `own`
        yields the names of the dimensions that are written in the recipe itself.
        """
        for node in walk(root):
            if isinstance(node, IntegerDimension | RealDimension | ChoiceDimension):
                yield next(own)
            elif isinstance(node, HoleNode):
                dimension = self._study.dimensions.get(node.name)
                texts: Sequence[Level] = [self._levels.get(node.name, "")]
                if dimension is not None:
                    texts = representative_values(dimension)
                    yield node.name
                for text in texts:
                    if isinstance(text, str) and HOLE_PATTERN.search(text):
                        yield from self._names(self._study.template.expand(text).root, iter(()))
