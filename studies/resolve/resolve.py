"""Resolution of a template and values into the settings of one trial, with all problems reported."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, cast

from ...grammar import RecipeError
from ..schema.factors import ABSENT, SEED
from ..schema.settings import Level, TrialSettings
from ..text.strict_model import InvalidTableError, ValidationProblem, validate
from ..text.toml_positions import KeyPath
from .compatibility import incompatibilities
from .template import RECIPE_PATH, TRIAL_TABLES, Template
from .training_budget import spend, take_budget
from .trial import with_code

_PLACEHOLDER_RECIPE = "sa"  # for a recipe that is wrong, so that all else is checked too

_ANY_VALUES: Mapping[str, Mapping[str, Any]] = {
    "model": {"recipe": _PLACEHOLDER_RECIPE, "d_model": 1},
    "train": {"optimizer": {"name": "adam", "lr": 1.0}, "batch_size": 1, "epochs": 1, "steps_per_epoch": 1},
}
"""Placeholders for wrong or missing required keys, so that everything else is checked too."""


_OF_METRICS = ("lengths", "curriculum", "keep", "measure", "loss_terms", "callbacks")
"""The keys of [train] that decide, beside [task], which metrics a trial has."""


class InvalidSettingsError(InvalidTableError):
    """Settings that are invalid; `known` are those that are not, None if that leaves metrics uncertain."""

    def __init__(self, problems: tuple[ValidationProblem, ...], known: TrialSettings | None) -> None:
        """Keep the problems and the settings."""
        super().__init__(problems)
        self.known = known


def resolve_settings(template: Template, values: Mapping[str, Level]) -> TrialSettings:
    """Return the settings of the trial with these values; raise InvalidSettingsError with all problems.

    `values` has a level for every hole and every dimension that needs one. Keys that do not depend on a wrong
    key are still checked. A key whose value is an absent factor's hole is left out.
    """
    absent = [name for name, level in values.items() if level == ABSENT]
    values = {name: level for name, level in values.items() if name not in absent}
    tables = template.fill({**values, **{name: f"{{{name}}}" for name in absent}}, left_out=absent)
    problems = [*_unfilled(template, values, absent)]
    budget = take_budget(tables, problems)
    unfilled = {problem.path for problem in problems}
    if RECIPE_PATH in unfilled:
        tables["model"]["recipe"] = _PLACEHOLDER_RECIPE
    elif RECIPE_PATH in template.texts:
        try:
            tables["model"]["recipe"] = template.recipe(values)
        except RecipeError as error:
            problems += [ValidationProblem(RECIPE_PATH, fault.message) for fault in error.faults]
            tables["model"]["recipe"] = _PLACEHOLDER_RECIPE
    settings: TrialSettings | None
    is_certain = True
    try:
        settings = validate(TrialSettings, {**tables, SEED: values.get(SEED, 0)})
    except InvalidTableError as error:
        problems += [problem for problem in error.problems if problem.path not in unfilled]
        settings = _without_faults(tables, problems)
        is_certain = not any(_touches_metrics(problem) for problem in problems)
    if settings is not None and budget is not None and not problems:
        try:
            settings = spend(settings, budget)
        except ValueError as error:
            problems.append(ValidationProblem(budget.path, str(error)))
    if settings is not None:
        faults = tuple(problems)
        problems += incompatibilities(
            settings, (lambda path: _is_unknown(path, tables, faults)) if faults else None
        )
    if problems or settings is None:
        raise InvalidSettingsError(tuple(problems), settings if is_certain else None)
    return with_code(settings)


def _touches_metrics(problem: ValidationProblem) -> bool:
    """Return whether a wrong key, or one that is meant by an unknown key, may decide about metrics."""
    table, *keys = problem.path or ("",)
    return table == "task" or (table == "train" and (problem.key or not keys or keys[0] in _OF_METRICS))


def _unfilled(
    template: Template, values: Mapping[str, Level], absent: Collection[str]
) -> Iterator[ValidationProblem]:
    levels = {name: [level] for name, level in values.items()}
    for path in template.holes if absent else ():
        if template.is_left_out(path, absent):
            continue
        for name in template.names_at(path, levels):
            if name in absent:
                message = f"no value for the hole {{{name}}}, since {name} is absent"
                yield ValidationProblem(path, message)


def _without_faults(tables: Mapping[str, Any], problems: Iterable[ValidationProblem]) -> TrialSettings | None:
    """Return settings with valid placeholders for faulty keys; None if there are none."""
    faulty = {problem.path[:2] for problem in problems}
    repaired = {
        name: {**_ANY_VALUES.get(name, {}), **_sound_keys(name, tables.get(name), faulty)}
        for name in TRIAL_TABLES
    }
    try:
        return validate(TrialSettings, repaired)
    except InvalidTableError:
        return None


def _sound_keys(name: str, table: object, faulty: Collection[KeyPath]) -> dict[str, Any]:
    """Return the faultless keys of a table; nothing for other values."""
    if not isinstance(table, Mapping):
        return {}
    keys = cast("Mapping[str, Any]", table)
    return {key: value for key, value in keys.items() if (name, key) not in faulty}


def _is_unknown(path: KeyPath, tables: Mapping[str, Any], problems: Iterable[ValidationProblem]) -> bool:
    name, keys = str(path[0]), path[1:]
    within = [problem for problem in problems if problem.path[:1] == (name,)]
    if not keys or not isinstance(tables.get(name), Mapping):
        return bool(within)
    if keys[0] in tables[name]:
        return any(problem.path[1:2] == (keys[0],) for problem in within)
    return any(problem.key for problem in within)
