"""Templates of trials' settings: tables with holes to fill."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...grammar import Recipe, RecipeError, lookup
from ...grammar.dimensions import resolve
from ...grammar.nodes import BlockNode, Dimension, HoleNode, Node, RepeatNode, walk
from ..catalog.tasks.algorithmic import AlgorithmicTask
from ..schema.factors import ABSENT, HOLE_PATTERN, SEED, TableLevels, level_name
from ..schema.settings import (
    BUDGET_KEYS,
    RECIPE_PATH,
    CurriculumSettings,
    Level,
    TrialSettings,
    keep_recipe,
    read_recipe,
)
from ..text.strict_model import InvalidTableError, ValidationProblem, as_table, validate
from ..text.toml_positions import KeyPath
from .compatibility import incompatibilities
from .trial import with_code

if TYPE_CHECKING:
    from ..schema.search import Suggest

TRIAL_TABLES = ("model", "task", "train")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The tables [model], [task] and [train] with their holes.

    `fragments` fill holes of the recipe, of its levels and of each other. Recipes are cached by the
    values that they use, so that large grids parse few of them.

    A level of `table_levels` is a table. It replaces a hole that is a whole value. At the key `name`
    of a table, it adds all of its keys to that table and overrides keys that are already there.
    """

    tables: Mapping[str, Any]
    fragments: Mapping[str, str] = field(default_factory=dict)
    table_levels: TableLevels = field(default_factory=dict[str, Mapping[Level, Mapping[str, Any]]])
    texts: Mapping[KeyPath, str] = field(init=False)  # all texts, with or without holes
    holes: Mapping[KeyPath, tuple[str, ...]] = field(init=False)  # the holes of each text that has any
    other_holes: tuple[str, ...] = field(init=False)  # the holes of all texts except the recipe
    _recipes: dict[tuple[Any, ...], str] = field(default_factory=dict, init=False, compare=False, repr=False)
    _valid: dict[str, TrialSettings] = field(default_factory=dict, init=False, compare=False, repr=False)
    _sound: dict[tuple[Any, ...], dict[str, TrialSettings]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", dict(iter_texts(self.tables)))
        find = {RECIPE_PATH: self.names_in}
        holes = {path: tuple(find.get(path, HOLE_PATTERN.findall)(text)) for path, text in self.texts.items()}
        holes = {path: names for path, names in holes.items() if names}
        object.__setattr__(self, "holes", holes)
        others = (name for path, names in holes.items() if path != RECIPE_PATH for name in names)
        object.__setattr__(self, "other_holes", tuple(others))

    @property
    def hole_names(self) -> set[str]:
        """The names of all holes in the tables, and in levels that are tables."""
        inside = (name for _, text in iter_texts(self.table_levels) for name in HOLE_PATTERN.findall(text))
        return {*inside, *(name for names in self.holes.values() for name in names)}

    def written_level(self, name: str, level: Level) -> Any:  # noqa: ANN401 -- TOML holds anything
        """Return a level as the study file writes it.

        A level that is a table in the file is stored by its name; return this table.
        """
        table = self.table_levels.get(name, {}).get(level)
        if table is None:
            return level
        return dict(table) if table.get("name") == level else {"label": level, **table}

    def names_in(self, text: str) -> list[str]:
        """Return the names of the holes in a text and its fragments."""
        names = _with_inner_names(
            HOLE_PATTERN.findall(text), lambda name: HOLE_PATTERN.findall(self.fragments.get(name, ""))
        )
        return [name for name in names if name not in self.fragments]

    def names_in_level(self, level: Level, factor: str = "") -> list[str]:
        """Return the names of the holes that a level of a factor contains.

        Only a text, or a table of the factor, can use names.
        """
        if not isinstance(level, str):
            return []
        if table := self.table_levels.get(factor, {}).get(level):
            return [name for _, text in iter_texts(table) for name in HOLE_PATTERN.findall(text)]
        return self.names_in(level)

    def names_at(self, path: KeyPath, levels: Mapping[str, Iterable[Level]]) -> list[str]:
        """Return the names of the holes on which a key's value depends.

        `path` leads to the key. They are the holes at the path, the holes in the levels that fill them, and
        holes with a level that is a table with this key.
        """
        around = [
            name
            for end in range(1, len(path) + 1 if self.table_levels else 1)
            for place in (path[:end], (*path[:end], "name"))
            for name in self.holes.get(place, ())
            if place != path and name in self.table_levels
        ]
        return _with_inner_names(
            [*self.holes.get(path, ()), *around],
            lambda name: [
                hole for level in levels.get(name, ()) for hole in self.names_in_level(level, name)
            ],
        )

    def expand(self, text: str) -> Recipe:
        """Parse a text as a recipe, with fragments of [recipes] in place of their names.

        Raise RecipeError if a fragment does not fit.
        """
        return _filled_recipe(read_recipe(text), {}, self.fragments)

    def fill(self, levels: Mapping[str, Level]) -> dict[str, Any]:
        """Return the tables with all holes filled, except the holes in the recipe.

        Raise KeyError for a hole without a level. A text that is only a hole becomes the level
        itself. Keys that only have holes of absent factors are left out; other such holes stay.
        """
        absent = {name: f"{{{name}}}" for name, level in levels.items() if level == ABSENT}
        return self._filled(self.tables, {**levels, **absent}, absent)

    def variants(self, factors: Mapping[str, Iterable[Level]]) -> dict[str, dict[str, dict[str, Any]]]:
        """Return the tables by factor and level, for each factor that decides which keys there are.

        Such a factor has levels that are tables, or fills a key `name`. Other holes stay.
        """
        unfilled = {name: f"{{{name}}}" for name in self.hole_names}
        names = {name for path, each in self.holes.items() if path[-1] == "name" for name in each}
        return {
            factor: {level_name(level): self.fill({**unfilled, factor: level}) for level in levels}
            for factor, levels in factors.items()
            if factor in unfilled and (factor in names or factor in self.table_levels)
        }

    def _filled(
        self,
        value: Any,  # noqa: ANN401 -- TOML holds anything
        values: Mapping[str, Level],
        absent: Collection[str] = (),
        path: KeyPath = (),
    ) -> Any:  # noqa: ANN401
        if isinstance(value, str):
            return self._filled_text(value, values) if "{" in value and path != RECIPE_PATH else value
        if isinstance(value, list):
            return [self._filled(each, values, absent) for each in value]
        if not isinstance(value, Mapping):
            return value
        table = {
            key: self._filled(inner, values, absent, (*path, key))
            for key, inner in value.items()
            if not (absent and _is_left_out((*path, key), inner, absent))
        }
        level = table.get("name")
        if isinstance(level, Mapping) and isinstance(value["name"], str):
            return {**table, **level}  # such a level brings other keys of the table
        return table

    def _filled_text(self, text: str, values: Mapping[str, Level]) -> Any:  # noqa: ANN401 -- TOML holds anything
        """Fill the holes of a text; a text that is only a hole becomes the level itself."""
        hole_only = HOLE_PATTERN.fullmatch(text)
        if hole_only is None:
            return HOLE_PATTERN.sub(lambda hole: str(values[hole[1]]), text)
        level = values[hole_only[1]]
        tables = self.table_levels.get(hole_only[1], {})
        table = tables.get(level) if isinstance(level, str) else None
        return level if table is None else self._filled(table, values)

    def recipe(self, values: Mapping[str, Level]) -> str:
        """Return the recipe with these values filled in, as text.

        Raises RecipeError for a value that does not fit.
        """
        recipe = self.expand(self.texts[RECIPE_PATH])
        key = tuple((name, type(values[name]), values[name]) for name in self._needed(recipe, values))
        if key not in self._recipes:
            chosen = {name: values[name] for name, _ in recipe.dimensions if name in values}
            recipe = recipe.choose(chosen) if chosen else recipe
            filled = _filled_recipe(recipe, values, self.fragments)
            keep_recipe(filled.text, filled)
            self._recipes[key] = filled.text
        return self._recipes[key]

    def validate(self, tables: dict[str, Any]) -> TrialSettings:
        """Return the settings in these tables; raise InvalidTableError if they are invalid.

        Settings are cached by all tables except the recipe, because many cells differ only in their recipe.
        """
        model = as_table(tables.get("model"))
        text = model.get("recipe")
        recipe = read_recipe(text) if isinstance(text, str) else None
        if recipe is None or recipe.holes or recipe.dimensions:
            return _with_lengths(validate(TrialSettings, tables))
        key = repr({**tables, "model": {**model, "recipe": ""}})
        if key not in self._valid:
            self._valid[key] = _with_lengths(validate(TrialSettings, tables))
        return self._valid[key].with_recipe(recipe.text)

    def sound_settings(self, levels: Mapping[str, Level]) -> dict[str, TrialSettings] | None:
        """Return the known sound settings with these levels outside of the recipe, by their recipe.

        `resolve_settings` adds to them. Return None where a factor is absent, or a budget decides the steps:
        settings may then differ in more than the recipe.
        """
        if ABSENT in levels.values() or not as_table(self.tables.get("train")).keys().isdisjoint(BUDGET_KEYS):
            return None
        names = _with_inner_names(
            self.other_holes, lambda name: self.names_in_level(levels[name], name) if name in levels else []
        )
        key = tuple((name, type(levels[name]), levels[name]) for name in (*names, SEED) if name in levels)
        return self._sound.setdefault(key, {})

    def choose(
        self, dimensions: Mapping[str, Dimension], fixed: Mapping[str, Level], suggest: Suggest
    ) -> dict[str, Level]:
        """Choose the values of a search point by calling `suggest`.

        Return them by dimension, in the order of `dimensions`. Only active dimensions are included: a
        dimension inside an option is active only if the option is chosen. Dimensions in the recipe are chosen
        first, in text order. Then come the dimensions that fill the recipe's holes, the holes
        in the values of these dimensions, and the holes of other tables. Raise ValueError for a value
        outside its dimension.
        """
        chosen: dict[str, Level] = {}

        def value(name: str) -> Level:
            if name in dimensions and name not in chosen:
                chosen[name] = suggest(name, dimensions[name])
            return chosen[name] if name in chosen else fixed[name]

        recipe = self.expand(self.texts[RECIPE_PATH])
        holes = list(recipe.holes)
        if recipe.dimensions:  # without dimensions, all holes of the recipe are used
            taken = resolve(recipe.root, lambda name, _: value(name))
            holes = list(dict.fromkeys(node.name for node in walk(taken) if isinstance(node, HoleNode)))
        holes += self.other_holes
        for hole in holes:  # the loop appends to this list
            if isinstance(level := value(hole), str):
                holes += [inner for inner in self.names_in_level(level, hole) if inner not in holes]
        return {name: chosen[name] for name in dimensions if name in chosen}

    def _needed(self, recipe: Recipe, values: Mapping[str, Level]) -> list[str]:
        """Return those names in `values` that change the text of a recipe, also through their values."""
        names = _with_inner_names(
            [*(name for name, _ in recipe.dimensions), *recipe.holes],
            lambda name: self.names_in_level(values[name]) if name in values else [],
        )
        return [name for name in names if name in values]


def _with_inner_names(names: Iterable[str], inside: Callable[[str], Iterable[str]]) -> list[str]:
    found = dict.fromkeys(names)
    left = list(found)
    for name in left:  # the loop appends to this list
        left += [inner for inner in dict.fromkeys(inside(name)) if inner not in found]
        found |= dict.fromkeys(left[len(found) :])
    return left


def value_holes(root: Node) -> frozenset[str]:
    """Return the holes in a recipe that are filled by numbers or words, not by parts."""
    names: set[str] = set()
    for node in walk(root):
        if isinstance(node, RepeatNode) and isinstance(node.count, HoleNode):
            names.add(node.count.name)
        if isinstance(node, BlockNode) and (spec := lookup(node.name)):
            for name, value in node.arguments:
                parameter = spec.parameter(name)
                if isinstance(value, HoleNode) and parameter is not None and parameter.kind != "recipe":
                    names.add(value.name)
    return frozenset(names)


def iter_texts(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:  # noqa: ANN401 -- TOML holds anything
    """Yield every text inside nested tables and lists, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from iter_texts(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from iter_texts(inner, (*path, index))


def _value_at(value: Any, path: KeyPath) -> Any:  # noqa: ANN401 -- TOML holds anything
    for part in path:
        value = value[part]
    return value


def _key_of(path: KeyPath) -> KeyPath:
    """Return the path of the key to which the text at `path` belongs. The text may be an item of a list."""
    return path if isinstance(path[-1], str) else _key_of(path[:-1])


def _is_left_out(path: KeyPath, value: object, absent: Collection[str]) -> bool:
    """Return whether a key's value is one hole of an absent factor, or a list of such holes."""
    texts = value if isinstance(value, list) else [value]
    holes = [HOLE_PATTERN.fullmatch(text) if isinstance(text, str) else None for text in texts]
    return path != RECIPE_PATH and bool(holes) and all(hole and hole[1] in absent for hole in holes)


def _filled_recipe(recipe: Recipe, values: Mapping[str, Level], fragments: Mapping[str, str]) -> Recipe:
    for _ in range(len(values) + len(fragments)):  # a hole in a value is filled in the next round
        present = {
            name: fragments[name] if name in fragments else _without_names(values[name], fragments)
            for name in recipe.holes
            if name in fragments or name in values
        }
        if not present:
            break
        value = present[recipe.root.name] if isinstance(recipe.root, HoleNode) else None
        recipe = read_recipe(value) if isinstance(value, str) else recipe.fill(present)
    return recipe


def _without_names(level: Level, fragments: Mapping[str, str]) -> Level:
    """Return the recipe for which a level such as `{name}` stands by its name in [recipes], or the level."""
    while isinstance(level, str) and (hole := HOLE_PATTERN.fullmatch(level)) and hole[1] in fragments:
        level = fragments[hole[1]]
    return level


_PLACEHOLDER_RECIPE = "sa"  # replaces an invalid recipe, so that the other keys are still checked

_ANY_VALUES: Mapping[str, Mapping[str, Any]] = {
    "model": {"recipe": _PLACEHOLDER_RECIPE, "d_model": 1},
    "train": {"optimizer": {"name": "adam", "lr": 1.0}, "epochs": 1},
}
"""Example values for wrong or missing required keys, so that the other keys are checked too."""


_OF_METRICS = ("lengths", "curriculum", "keep", "measure", "loss_terms", "callbacks")
"""The keys of [train] that, together with [task], decide which metrics a trial has."""


class InvalidSettingsError(InvalidTableError):
    """Error for invalid settings of a trial.

    `known` has the settings with examples in place of invalid values, or None if these values may change the
    trial's metrics.
    """

    def __init__(self, problems: tuple[ValidationProblem, ...], known: TrialSettings | None) -> None:
        super().__init__(problems)
        self.known = known


def resolve_settings(template: Template, levels: Mapping[str, Level]) -> TrialSettings:
    """Return the settings of the trial with these levels; raise InvalidSettingsError with all problems.

    `levels` has a level for every hole and every dimension that needs one. Keys that do not depend on
    a wrong key are still checked. A key whose value is the hole of an absent factor is left out.
    """
    sound = template.sound_settings(levels)
    if sound and (settings := _with_known_tables(template, levels, sound)):
        return settings
    absent = [name for name, level in levels.items() if level == ABSENT]
    values = {name: level for name, level in levels.items() if name not in absent}
    tables = template.fill(levels)
    problems = [*_unfilled(template, values, absent)]
    budget = None
    if isinstance(tables.get("train"), dict) and not tables["train"].keys().isdisjoint(BUDGET_KEYS):
        from .training_budget import take_budget  # noqa: PLC0415 -- few studies have a budget

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
    is_certain = True
    try:
        settings = template.validate({**tables, SEED: values.get(SEED, 0)})
    except InvalidTableError as error:
        problems += [problem for problem in error.problems if problem.path not in unfilled]
        settings = _without_faults(tables, problems)
        is_certain = not any(_touches_metrics(problem) for problem in problems)
    if settings is not None and budget is not None and not problems:
        from .training_budget import spend_budget  # noqa: PLC0415 -- as above

        try:
            settings = spend_budget(settings, *budget)
        except ValueError as error:
            problems.append(ValidationProblem(("train", budget[0]), str(error)))
    if settings is not None:
        faults = tuple(problems)
        problems += incompatibilities(
            settings, (lambda path: _is_unknown(path, tables, faults)) if faults else None
        )
    if problems or settings is None:
        raise InvalidSettingsError(tuple(problems), settings if is_certain else None)
    settings = with_code(settings)
    if sound is not None:
        sound[settings.model.recipe] = settings
    return settings


def _with_known_tables(
    template: Template, levels: Mapping[str, Level], sound: dict[str, TrialSettings]
) -> TrialSettings | None:
    """Return the settings with these levels, of which only the recipe may be new; None if it has a fault."""
    try:
        text = template.recipe(levels)
    except RecipeError:
        return None
    if text not in sound:
        recipe, known = read_recipe(text), next(iter(sound.values()))
        settings = known.with_recipe(text)
        if recipe.holes or recipe.dimensions or any(incompatibilities(settings, of_recipe=True)):
            return None
        sound[text] = with_code(settings)
    return sound[text].model_copy()  # each cell has settings of its own


def _with_lengths(settings: TrialSettings) -> TrialSettings:
    """Return the settings. A task that trains on lengths gets a curriculum if the study names neither."""
    task, train = settings.task.spec, settings.train
    if not isinstance(task, AlgorithmicTask) or train.curriculum is not None or train.lengths is not None:
        return settings
    return settings.with_train(curriculum=CurriculumSettings(start=task.start))


def _touches_metrics(problem: ValidationProblem) -> bool:
    """Return whether the faulty key may change which metrics a trial has."""
    table, *keys = problem.path or ("",)
    return table == "task" or (table == "train" and (problem.key or not keys or keys[0] in _OF_METRICS))


def _unfilled(
    template: Template, values: Mapping[str, Level], absent: Collection[str]
) -> Iterator[ValidationProblem]:
    levels = {name: [level] for name, level in values.items()}
    for path in template.holes if absent else ():
        key = _key_of(path)
        is_left_out = _is_left_out(key, _value_at(template.tables, key), absent)
        for name in () if is_left_out else template.names_at(path, levels):
            if name in absent:
                why = f"the condition of {name} in [when] does not hold here"
                yield ValidationProblem(path, f"no value for the hole {{{name}}}: {why}")


def _without_faults(tables: Mapping[str, Any], problems: Iterable[ValidationProblem]) -> TrialSettings | None:
    faulty, repaired = {problem.path[:2] for problem in problems}, dict[str, dict[str, Any]]()
    for name in TRIAL_TABLES:
        keys = as_table(tables.get(name))
        sound = {key: value for key, value in keys.items() if (name, key) not in faulty}
        repaired[name] = {**_ANY_VALUES.get(name, {}), **sound}
    try:
        return _with_lengths(validate(TrialSettings, repaired))
    except InvalidTableError:
        return None


def _is_unknown(path: KeyPath, tables: Mapping[str, Any], problems: Iterable[ValidationProblem]) -> bool:
    name, keys = str(path[0]), path[1:]
    within = [problem for problem in problems if problem.path[:1] == (name,)]
    if not keys or not isinstance(tables.get(name), Mapping):
        return bool(within)
    if keys[0] in tables[name]:
        return any(problem.path[1:2] == (keys[0],) for problem in within)
    return any(problem.key for problem in within)
