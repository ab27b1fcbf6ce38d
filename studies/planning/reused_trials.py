"""Stored trials that a study can reuse in place of its own.

They are from older plug-in source, or have fewer epochs. `RecipeSpace` finds the point of a search that has
a recipe.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ...errors import check_arguments, texts_fault
from ...grammar import Recipe, RecipeError, render
from ...grammar.nodes import ChoiceDimension, HoleNode, IntegerDimension, Node, RealDimension, walk
from ...grammar.space import find_derivation
from ...plugins import has_plugins
from ...storage import Store, open_store, store_fault
from ...storage.rows import KEY_COLUMNS
from ..catalog.optimisers import rates_depend_on_length
from ..resolve.template import HOLE_PATTERN
from ..resolve.trial import (
    Trial,
    changed_code,
    digest,
    settings_from_json,
    shown,
    trial_id,
    with_code,
)
from ..schema.search import representative_values
from ..schema.settings import RECIPE_PATH, Level, TrialSettings
from ..study import Study, study_fault
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
    here = set(outcomes["trial"])
    return {
        each.now: each
        for each in _stale(done)
        if each.now not in here and (wanted is None or each.now in wanted)
    }


def keep_stale_trials(
    study: Study, store: Store | str | Path, trials: Collection[str] | None = None
) -> dict[str, StaleTrial]:
    """Keep the stored results of trials although their plug-ins were edited.

    The edits must be ones that change no result. The source of a plug-in is part of a trial's id. So each
    outcome is copied to the id that the trial has now; the rows still record the original source. Return the
    copied trials by current id. `trials` restricts them to these current ids. Trials that another process is
    training are skipped.
    """
    check_arguments(
        study_fault(study),
        store_fault(store),
        None if trials is None else texts_fault("trials", trials, "[study.trials[0].id]"),
    )
    store = open_store(store)
    found = find_stale_trials(study, store.trials())
    wanted = {now: each for now, each in found.items() if trials is None or now in trials}
    return {now: each for now, each in wanted.items() if store.upkeep.copy_outcome(each.stored, now)}


def describe_stale(stale: Mapping[str, StaleTrial]) -> str:
    """Describe how many stored trials used another version of a plug-in, and what changed."""
    pairs = {both for each in stale.values() for both in each.changes.values()}
    changes = ", ".join(sorted(_change(then, now) for then, now in pairs))
    count = len(stale)
    are = "is" if count == 1 else "are"
    return f"{plural(count, 'stored trial')} {are} from other versions of the code ({changes})"


def _stale(rows: pl.DataFrame) -> Iterator[StaleTrial]:
    for trial, text in rows.sort("finished").select("trial", "settings").iter_rows():
        if changes := changed_code(text):
            try:
                now = trial_id(with_code(settings_from_json(text)))
            except ValueError:  # the settings have keys that no longer exist
                continue
            yield StaleTrial(stored=trial, now=now, changes=changes)


def _change(then: str, now: str) -> str:
    """Describe how a plug-in changed, as in `mqar.py 1a2b3c4d, now 3c4d5e6f`.

    For a package, both versions are named.
    """
    if not then:
        return f"{now.rpartition(' ')[0]}, not recorded, now {shown(now).rpartition(' ')[2]}"
    same = then.rpartition(" ")[0] == now.rpartition(" ")[0]
    return f"{shown(then)}, now {shown(digest(now)).strip() if same else shown(now)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShorterTrial:
    """A finished trial from which a longer one can continue.

    The two differ only in the number of epochs. `epochs` is the number of epochs that the longer trial can
    skip.
    """

    trial: str
    epochs: int


class ShorterTrials:
    """Finished trials that longer trials can continue.

    Their final state is in a store. They are looked up by their settings without the number of epochs.
    """

    def __init__(self, store: Store) -> None:
        self._found: dict[str, list[ShorterTrial]] = {}
        kept = store.files.trials_with_final_checkpoint()
        if not kept:
            return
        columns = (*KEY_COLUMNS, "status", "settings")
        rows = store.trials(columns=columns).filter(pl.col("trial").is_in(list(kept)), status="done")
        for trial, text in rows.select("trial", "settings").iter_rows():
            try:
                settings = settings_from_json(text)
            except ValueError:  # the trial needs a plug-in or a corpus that is no longer known
                continue
            if trial_id(settings) == trial:  # otherwise RESULTS_VERSION has been raised since
                shorter = ShorterTrial(trial=trial, epochs=settings.train.epochs)
                self._found.setdefault(_without_epochs(settings), []).append(shorter)

    def add(self, trial: Trial) -> None:
        """Add a newly finished trial whose final state is kept."""
        shorter = ShorterTrial(trial=trial.id, epochs=trial.settings.train.epochs)
        self._found.setdefault(_without_epochs(trial.settings), []).append(shorter)

    def find(self, trial: Trial) -> ShorterTrial | None:
        """Return the longest finished trial that `trial` can continue, or None.

        A resumed trial's result equals, bit for bit, the result of a trial that begins at the start.
        """
        train = trial.common.train
        if not self._found or train.seconds is not None:  # an epoch of a shorter time has fewer steps
            return None
        fitting = [
            each
            for each in self._found.get(_without_epochs(trial.settings), ())
            if each.epochs < train.epochs
            and not rates_depend_on_length(train.schedule, each.epochs * train.steps_per_epoch)
        ]
        return max(fitting, key=lambda each: each.epochs, default=None)

    def find_all(self, trials: Iterable[Trial]) -> dict[str, ShorterTrial]:
        """Return the trials that can continue a shorter trial, each with that shorter trial."""
        found = ((trial.id, self.find(trial)) for trial in trials)
        return {trial: shorter for trial, shorter in found if shorter is not None}


def _without_epochs(settings: TrialSettings) -> str:
    return trial_id(settings.model_copy(update={"train": settings.train.model_copy(update={"epochs": 1})}))


class RecipeSpace:
    """All recipes that a search can choose.

    They are described by one pattern: the study's recipe, with a dimension of the search in place of each
    placeholder.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._written = study.template.expand(study.template.texts[RECIPE_PATH])
        self._levels = {
            name: levels[0] for name, levels in study.factors.items() if name not in study.dimensions
        }
        self._pattern: Recipe | None = None
        self._places: list[str] = []
        try:
            self._pattern = self._filled()
            self._places = list(
                self._names(self._written.root, iter([n for n, _ in self._written.dimensions]))
            )
        except RecipeError:  # a dimension cannot stand in the place of a placeholder
            self._pattern = None

    @property
    def pattern(self) -> Recipe | None:
        """The study's recipe, with a search dimension for each placeholder.

        None if a dimension cannot stand in one of these places.
        """
        return self._pattern

    def values(self, recipe: Recipe) -> dict[str, Level] | None:
        """Return the value of each search dimension for which the study's recipe becomes this recipe.

        Return None if the recipe is not in the space.
        """
        if self._pattern is None:
            return None
        found = find_derivation(self._pattern.root, recipe.root)
        if found is None:
            return None
        values: dict[str, Level] = {}
        for place, (_, value) in found.items():
            name = self._places[place]
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
        # a filling may contain placeholders itself, so they are filled again, at most once for each name
        for _ in range(len(fillings)):
            recipe = recipe.fill({name: fillings[name] for name in recipe.holes if name in fillings})
        return recipe

    def _names(self, root: Node, own: Iterator[str]) -> Iterator[str]:
        """Yield the names of the search's dimensions, in the order of the recipe's text.

        A placeholder's own dimension comes before the dimensions inside the texts that may fill it. `own`
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
