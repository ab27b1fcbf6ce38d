"""Access to a search from other programs.

They ask for its next points, or submit points of their own. Nothing is trained here. A submitted point is
stored as begun and unfinished. The next run trains it, and a running search notices it. Results come only
from trainings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ....errors import ActivememError, nearest_hint, plain_value
from ....grammar import Recipe, RecipeError, parse, render
from ....grammar.dimensions import representative_values
from ....grammar.nodes import ChoiceDimension, Dimension
from ....storage import Store
from ....storage.trial_files import is_begun
from ....studies.catalog.metrics import METRICS_AND_COSTS, metric_family
from ....studies.planning.reused_trials import RecipeSpace
from ....studies.schema.search import as_listed, contains, options_by_name
from ....studies.schema.settings import Level
from ....studies.study import Study
from ....studies.text.errors import StudyError, StudyFault
from ....studies.text.strict_model import format_value
from ...core.events import NOBODY
from ...trial.checkpoints import Checkpoint
from .answers import HandInAnswer, PointAnswer, Proposal
from .search import Search
from .stored_points import SearchPoint

KEYS = ("values", "recipe", "id")
"""Keys that identify a point; values or a recipe suffice, and all given keys must agree."""

PROPOSAL_KEYS = ("schema", "recipe_id", "proposed_by", "parameters", "seeds", "trials", "settings")
"""Further keys of a proposal, allowed so that it can be submitted unchanged."""

RESULT_KEYS = ("value", "metric", "metrics", "result", "results", "mean", "score", "loss", "accuracy")
"""Keys that hold a result, besides names of metrics; lines with them are rejected."""


class PointError(ActivememError):
    """Error for a JSON object that describes no point of the search. The message lists all faults."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


def read_handed_in(study: Study, line: object) -> SearchPoint:
    """Return the search point that a JSON object describes.

    The object has values, a recipe, or both. The values of dimensions must include all that the recipe does
    not determine. Raise PointError if the line is not a point of the study's space or has a result:
    results come only from trainings.
    """
    if not isinstance(line, Mapping):
        raise PointError([f"expected an object with values or a recipe, got {_kind(line)}"])
    faults = [_key_fault(str(key)) for key in line if key not in (*KEYS, *PROPOSAL_KEYS)]
    if "values" not in line and "recipe" not in line:
        faults.append("expected values or a recipe, got neither")
    given, recipe = line.get("values", {}), None
    if not isinstance(given, Mapping):
        faults.append(f"values: expected an object, got {_kind(given)}")
        given = {}
    given = {name: plain_value(value) for name, value in given.items()}
    if "recipe" in line:
        recipe = _read_recipe(line["recipe"], faults)
    known = dict(given)
    if recipe is not None:
        determined = RecipeSpace(study).values(recipe)
        if determined is None:
            faults.append(f"recipe: {recipe.text} is not in the space of {study.name}")
        else:
            known = {**determined, **given}
    if faults:
        if recipe is None and given:
            _choose(study, known, faults)
        raise PointError(faults)
    point = _make_point(study, _choose(study, known, faults), faults)
    if recipe is not None and parse(point.trials[0].settings.model.recipe) != recipe:
        built = parse(point.trials[0].settings.model.recipe)
        raise PointError([f"recipe: expected {built.text}, the recipe of these values, got {recipe.text}"])
    if "id" in line and line["id"] != point.name:
        raise PointError([f"id: expected {point.name}, got {line['id']!r}"])
    return point


def _choose(study: Study, given: Mapping[str, Any], faults: list[str]) -> dict[str, Level]:
    assert study.search is not None
    missing: list[str] = []

    def take(name: str, dimension: Dimension) -> Level:
        if name not in given:
            missing.append(name)
        elif (level := _level(dimension, given[name])) is not None:
            return level
        else:
            faults.append(f"{name}: expected {render(dimension)}, got {format_value(given[name])}")
        return representative_values(dimension)[0]

    used = study.search.choose(take)
    faults += [f"{name}: expected {render(study.dimensions[name])}, got nothing" for name in missing]
    for name in (each for each in given if each not in used):
        if name not in study.dimensions:
            hint = nearest_hint(str(name), study.dimensions)
            faults.append(f"{name}: {study.name} has no such dimension{hint}")
        elif _level(study.dimensions[name], given[name]) is None:
            expected = render(study.dimensions[name])
            faults.append(f"{name}: expected {expected}, got {format_value(given[name])}")
        elif not missing:
            faults.append(f"{name}: this dimension is not used with these values of the other dimensions")
    return used


def _make_point(study: Study, values: dict[str, Level], faults: list[str]) -> SearchPoint:
    assert study.search is not None
    if faults:
        raise PointError(faults)
    try:
        point = SearchPoint(values, study.search.trials_of(values))
    except ValueError as error:
        raise PointError([str(error)]) from error
    if not study.budget.allows(point.trials[0].settings):
        raise PointError([f"beyond the limits: {study.budget.describe_excess(point.trials[0].settings)}"])
    return point


def _level(dimension: Dimension, value: object) -> Level | None:
    if not isinstance(value, str | int | float):
        return None
    if isinstance(dimension, ChoiceDimension):
        names = options_by_name(dimension)
        return names.find(value) if names.has(value) else None
    if not contains(dimension, value):
        return None
    return as_listed(dimension, value)


def _read_recipe(text: object, faults: list[str]) -> Recipe | None:
    if not isinstance(text, str):
        faults.append(f"recipe: expected a text, got {_kind(text)}")
        return None
    try:
        recipe = parse(text)
    except RecipeError as error:
        faults += [f"recipe, column {fault.start + 1}: {fault.message}" for fault in error.faults]
        return None
    if open_ones := [*recipe.holes, *(name for name, _ in recipe.dimensions)]:
        faults.append(f"recipe: expected no holes and no choices, got {', '.join(open_ones)}")
        return None
    return recipe


def _key_fault(key: str) -> str:
    if key in RESULT_KEYS or metric_family(key) in METRICS_AND_COSTS:
        return f"{key}: study run measures the results of a point: remove this key"
    return f"unknown key '{key}'{nearest_hint(key, (*KEYS, *PROPOSAL_KEYS))}"


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


class SearchService:
    """A study's search as a service for other programs.

    It proposes points, and accepts submitted ones. Raise StudyError for a study that is not a search.
    """

    def __init__(self, study: Study, store: Store) -> None:
        if study.search is None:
            message = f"expected a study with [search], got a grid of {study.total:,} trials"
            raise StudyError(study.name, [StudyFault(message=message)])
        self._study, self._store, self._limit = study, store, study.search.settings.trials
        self._search = Search(study, store, "desk", NOBODY, looks=True)

    def propose(self, count: int) -> list[Proposal]:
        """Return the next search points that no driver has begun, at most `count`."""
        found: list[Proposal] = []
        while len(found) < count and (proposed := self._search.propose()) is not None:
            found.append(Proposal.of(*proposed))
        return found

    def hand_in_all(self, lines: Iterable[object]) -> Iterator[HandInAnswer]:
        """Submit the point on each line, and yield the answers. Empty lines are counted, but not answered."""
        for number, line in enumerate(lines, start=1):
            if not isinstance(line, str) or line.strip():
                yield replace(self.hand_in(line), line=number)

    def hand_in(self, line: object) -> HandInAnswer:
        """Submit a search point to the next run.

        Return whether it is accepted, or why not. The point is a proposal, a JSON object, or the text of one.
        For a known point return the outcomes of its trainings. It is not trained again.
        """
        if isinstance(line, Proposal):
            line = {"values": line.values, "id": line.id}
        if isinstance(line, str):
            try:
                line = json.loads(line)
            except (ValueError, RecursionError) as error:
                return HandInAnswer.of(PointAnswer.REFUSED, faults=[f"expected a JSON object: {error}"])
        try:
            point = read_handed_in(self._study, line)
        except PointError as error:
            return HandInAnswer.of(PointAnswer.REFUSED, faults=error.faults)
        known = self._search.count_known()  # this also reads the new rows
        stored, missing = self._search.points.outcomes(point), self._search.points.missing(point)
        if not missing:
            return HandInAnswer.of(PointAnswer.KNOWN, point, rows=stored)
        begun = self._store.files.checkpoints_folder()
        if stored or any(is_begun(begun / trial.id) for trial in missing):
            return HandInAnswer.of(PointAnswer.WAITING, point)
        if known >= self._limit:
            fault = f"no points are left: all {self._limit:,} points of the search are trained or begun"
            return HandInAnswer.of(PointAnswer.REFUSED, point, faults=[f"{fault}; raise trials in [search]"])
        for trial in missing:
            Checkpoint(self._store, trial.id).record_request(trial.to_json())
        return HandInAnswer.of(PointAnswer.ACCEPTED, point)
