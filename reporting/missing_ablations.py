"""Ablations that a study lacks: single changes of its baseline, as a list or as a study file.

They are the cells of a study with `design = "one_at_a_time"`. One of its factors is the recipe: that of the
baseline, those with another level of a factor of the recipe, and those without one part, as with
`ablate = "parts"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import ActivememError
from ..grammar import parse
from ..grammar.difference import ablations, describe_difference
from ..storage import Store
from ..studies.catalog.metrics import METRICS_AND_COSTS
from ..studies.planning.status import stored_outcomes
from ..studies.planning.time_estimates import MeasureSteps, TimeEstimate, TimeEstimator, total_time
from ..studies.presentation.changes import change_name
from ..studies.resolve.costs import max_trial_flops
from ..studies.resolve.template import TRIAL_TABLES, Template, iter_texts, resolve_settings
from ..studies.resolve.trial import Trial
from ..studies.schema.factors import ABSENT, HOLE_PATTERN, SEED, level_key, one_line
from ..studies.schema.settings import RECIPE_PATH, Level
from ..studies.study import Study, load_recorded_study
from ..studies.text.errors import StudyError
from ..studies.text.toml_positions import toml_comment, toml_table

_KEPT = ("plugins", "keep_weights", "keep_checkpoints")
"""The [study] keys that are copied to the new study."""

RECIPE = "recipe"
"""The name of the factor with the removed parts, unless the study has a factor of this name."""

_Change = tuple[str, Level]
"""A factor, and a level of it that is not the baseline's."""


class MissingError(ActivememError):
    """Error if the missing ablations of a study cannot be found or written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingCell:
    """A changed baseline of which the store lacks trials, with the cost of these trials.

    `factor` has another `level` than in the baseline; `change` says this in words. `is_part` is true if a
    part of the recipe is removed.
    """

    factor: str
    level: Level
    change: str
    is_part: bool
    recipe: str
    trials: tuple[str, ...]
    flops: float
    estimate: TimeEstimate


@dataclass(frozen=True, kw_only=True)
class MissingAblations:
    """The single changes of a study's baseline.

    `tables` are the tables of the trials, with holes. `factors` have their levels, that of the baseline
    first; the one called `recipe` has those without a part last, from index `first_part` on. `held` has the
    levels of other factors with several levels. `changes` are those that a study file can have, each once.
    """

    study: Study
    tables: Mapping[str, Any]
    factors: Mapping[str, Sequence[Level]]
    recipe: str
    first_part: int
    held: Mapping[str, Level]
    changes: Sequence[_Change] = ()

    def missing_cells(self, store: Store, measure: MeasureSteps | None = None) -> list[MissingCell]:
        """Return the changed cells of which the store lacks trials.

        `measure` measures the training times that are unknown.
        """
        changed = self._load(self.changes)
        outcomes = stored_outcomes(store, changed)
        done = set(outcomes.filter(status="done")["trial"])
        estimator = TimeEstimator(outcomes, changed.trials, measure)
        base = parse(changed.cells[0].settings.model.recipe)
        found: list[MissingCell] = []
        parts = self.factors[self.recipe][self.first_part :]
        for (factor, level), trials in self._trials(changed).items():
            if left := [each for each in trials if each.id not in done]:
                recipe = trials[0].settings.model.recipe
                words = describe_difference(base.root, parse(recipe).root) if factor == self.recipe else ""
                found.append(
                    MissingCell(
                        factor=factor,
                        level=level,
                        change=words or change_name(factor, self.factors[factor][0], level),
                        is_part=factor == self.recipe and level in parts,
                        recipe=recipe,
                        trials=tuple(each.id for each in left),
                        flops=sum(max_trial_flops(each.settings) for each in left),
                        estimate=total_time(map(estimator.estimate, left)),
                    )
                )
        return found

    def study_text(self, cells: Iterable[MissingCell]) -> str:
        """Return the file of a study with the baseline and these cells."""
        return self._text((each.factor, each.level) for each in cells)

    def _text(self, changes: Iterable[_Change]) -> str:
        data, levels = self.study.document.data, {name: [own[0]] for name, own in self.factors.items()}
        for name, level in changes:
            levels[name].append(level)
        when = dict[str, dict[str, list[Level]]]()
        for name, condition in self.study.design.conditions.items():
            if name in levels:
                own = {
                    other: [each for each in of if each in levels.get(other, ())]
                    for other, of in condition.items()
                }
                if all(own.values()):
                    when[name] = own
                else:
                    del levels[name]  # no cell has this factor
        fragments = self.study.template.fragments
        used = self._used({**levels, **{name: [text] for name, text in fragments.items()}})
        written = {
            name: [self.study.template.written_level(name, each) for each in own]
            for name, own in levels.items()
            if name in used
        }
        whens = {name: condition for name, condition in when.items() if name in used}
        recipes = {name: text for name, text in fragments.items() if name in used}
        value = next((each for each in self.study.metrics if each in METRICS_AND_COSTS), "loss")
        header = {
            "name": f"{self.study.name}-missing",
            "title": f"Missing ablations: {one_line(self.study.title)}",
            "design": "one_at_a_time",
            **{key: data["study"][key] for key in _KEPT if key in data["study"]},
        }
        own_files = dict[str, Any]()
        if self.study.own_corpus is not None:  # as the file names them, not the facts about them
            own_files = {key: data["task"][key] for key in ("corpus", "tokenizer") if key in data["task"]}
        train = dict(self.tables["train"])
        if isinstance(start := data["train"].get("start"), Mapping):
            train["start"] = start
        tables = {
            "study": header,
            **self.tables,
            "train": train,
            "task": {**self.tables["task"], **own_files},
            "recipes": recipes,
            "decode": data.get("decode", {}),
            "factors": {**written, SEED: self.study.seeds},
            "when": whens,
        }
        return "\n".join(
            [
                toml_comment(
                    f"Ablations that {self.study.name} lacks, found by activemem study missing. "
                    "Remove the levels that you do not need."
                ),
                "",
                *(toml_table(f"[{name}]", table) for name, table in tables.items() if table),
                toml_table("[[table]]", {"name": "missing", "rows": "changes", "value": value}),
            ]
        )

    def _used(self, levels: Mapping[str, Sequence[Level]]) -> set[str]:
        """Return those of these names whose holes are in the tables, or in levels of names that are used."""
        template = self.study.template
        waiting = [text for _, text in iter_texts(self.tables)]
        used = set[str]()
        while waiting:
            for name in HOLE_PATTERN.findall(waiting.pop()):
                if name in levels and name not in used:
                    used.add(name)
                    own = [template.written_level(name, each) for each in levels[name]]
                    waiting += [text for _, text in iter_texts(own)]
        return used

    def _load(self, changes: Iterable[_Change]) -> Study:
        """Return the study with these changes. Raise StudyError if a study file cannot have them."""
        corpus = self.study.own_corpus
        return load_recorded_study(
            {"text": self._text(changes), "own_corpus": corpus and corpus.to_dict()},
        )

    def _trials(self, changed: Study) -> dict[_Change, list[Trial]]:
        """Return the trials of each changed cell of a study from `load`, without the baseline's."""
        found: dict[_Change, list[Trial]] = {}
        for trial in changed.cells:
            for name, level in trial.levels.items():
                own = self.factors.get(name)
                if own and level != ABSENT and level_key(level) != level_key(own[0]):
                    found.setdefault((name, level), []).append(trial)
        return found

    def with_sound_changes(self) -> MissingAblations:
        """Return these ablations with every change that a study file can have.

        Changes that repeat the baseline or an earlier change are left out. Raise MissingError if the baseline
        alone is no sound study.
        """
        every = [(name, level) for name, own in self.factors.items() for level in own[1:]]
        try:
            changed = self._load(every)
        except StudyError:
            try:
                changed = self._load(change for change in every if self._is_sound(change))
            except StudyError as error:
                raise MissingError(
                    f"the baseline of {self.study.name} is no study by itself: {error}"
                ) from None
        known = {frozenset(trial.id for trial in changed.cells[: len(self.study.seeds)])}
        changes: list[_Change] = []
        for change, trials in self._trials(changed).items():
            if (ids := frozenset(each.id for each in trials)) not in known:
                known.add(ids)
                changes.append(change)
        return replace(self, changes=changes)

    def _is_sound(self, change: _Change) -> bool:
        try:
            self._load([change])
        except StudyError:
            return False
        return True


def find_missing(study: Study) -> MissingAblations:
    """Return the single changes of a study's baseline. Raise MissingError for a search.

    Factors of the task keep the baseline's level, since other data are no ablation. If `[ladder]` or `match`
    sets the sizes or the steps of each cell, only parts are removed, at the numbers of the baseline.
    """
    if study.search is not None:
        raise MissingError(
            f"{study.name} is a search: first write the study of its best points, with activemem study "
            "promote"
        )
    found = _of_one_cell(study) if has_set_sizes(study) else _of_all_factors(study)
    return found.with_sound_changes()


def has_set_sizes(study: Study) -> bool:
    """Return whether [ladder] or `match` sets the sizes or the steps of each cell of a study."""
    return bool(study.design.ladder) or study.design.matched_size is not None


def _baseline_levels(study: Study) -> dict[str, Level]:
    return study.design.baseline_of({name: levels[0] for name, levels in study.factors.items()})


def _of_one_cell(study: Study) -> MissingAblations:
    """Return the removed parts of the cell that is most like the baseline, with its sizes and steps."""
    start = _baseline_levels(study)
    trial = min(study.cells, key=lambda each: sum(each.levels[name] != start[name] for name in study.factors))
    levels = dict(trial.levels)
    if (matched := study.design.matched_size) is not None:
        match = study.size_matches.get(trial.id)
        levels[matched.name] = matched.size if match is None or match.size is None else match.size
    tables, whole = study.template.fill(levels), trial.settings.model.recipe
    tables["model"]["recipe"] = whole
    filled = resolve_settings(Template(tables=tables), {}).train.model_dump(mode="json")
    own = trial.settings.train.model_dump(mode="json")
    tables["train"] |= {key: value for key, value in own.items() if value != filled[key]}  # as a ladder does
    tables["model"]["recipe"] = f"{{{RECIPE}}}"
    return MissingAblations(
        study=study,
        tables=tables,
        factors={RECIPE: [whole, *(each.text for each in ablations(parse(whole)))]},
        recipe=RECIPE,
        first_part=1,
        held={
            name: trial.levels[name]
            for name in study.factors
            if name != SEED and len(study.factors[name]) > 1
        },
    )


def _of_all_factors(study: Study) -> MissingAblations:
    """Return the changes of all factors except those of the task, and the removed parts of the recipe."""
    template, design, start = study.template, study.design, _baseline_levels(study)
    named = {name: levels for name, levels in study.factors.items() if name not in (SEED, *design.labels)}

    def filling(table: str) -> set[str]:
        paths = [path for path in template.holes if path[0] == table and path != RECIPE_PATH]
        return {name for path in paths for name in template.names_at(path, named) if name in named}

    fixed = filling("task")
    others = fixed | filling("model") | filling("train")
    others |= {other for name in others for other in design.conditions.get(name, ())}
    recipe = RECIPE
    while recipe in others:
        recipe += "_"

    def filled(levels: Mapping[str, Level]) -> str:
        inner = {name: level for name, level in levels.items() if name not in others and level != ABSENT}
        return template.recipe(inner)

    def changed(name: str, level: Level) -> dict[str, Level]:
        """Return the baseline with a change. Factors that only this cell has are at their first level."""
        first = {each: design.baseline_level(each) for each in named}
        return design.with_absent({**first, name: level})

    whole, factors = filled(start), dict[str, list[Level]]()
    recipes: dict[str, None] = {whole: None}
    for name, levels in named.items():
        own = [each for each in levels if level_key(each) != level_key(design.baseline_level(name))]
        if name not in others:
            own = own if start[name] != ABSENT else []
            recipes |= dict.fromkeys(filled(changed(name, each)) for each in own)
        else:
            factors[name] = [design.baseline_level(name), *([] if name in fixed else own)]
    parts = [each.text for each in ablations(parse(whole)) if each.text not in recipes]
    tables = {name: dict(template.tables[name]) for name in TRIAL_TABLES}
    tables["model"]["recipe"] = f"{{{recipe}}}"
    return MissingAblations(
        study=study,
        tables=tables,
        factors={recipe: [*recipes, *parts], **factors},
        recipe=recipe,
        first_part=len(recipes),
        held={name: start[name] for name in named if name in fixed and len(named[name]) > 1},
    )
