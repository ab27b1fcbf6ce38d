"""Ablations that a reviewer may request and that a study lacks, as a list or as a study file.

Every request is a cell close to a model of the study: another recipe, or another value of one setting. A
model is a recipe of the study, in the cell whose other levels are those of the baseline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from ..errors import ActivememError
from ..grammar import Recipe, RecipeError, parse
from ..grammar.canonical import identity, render
from ..grammar.difference import ablations, describe_difference, without_defaults
from ..grammar.dimensions import rebuild
from ..grammar.nodes import BlockNode, RepeatNode, TiedNode, Value, children, walk
from ..grammar.vocabulary.spec import REQUIRED, spec_of
from ..storage import Store
from ..studies.planning.status import stored_outcomes
from ..studies.planning.time_estimates import TimeEstimate, TimeEstimator, total_time
from ..studies.resolve.costs import (
    max_trial_flops,
    parameter_count,
    sequence_tokens,
    step_flops,
)
from ..studies.resolve.template import TRIAL_TABLES, Template, resolve_settings
from ..studies.resolve.trial import Trial
from ..studies.schema.factors import ABSENT, SEED, level_key, level_name, one_line, short_level_names
from ..studies.schema.settings import D_MODEL_PATH, RECIPE_PATH, Level, TrialSettings, read_recipe
from ..studies.study import Study
from ..studies.text.strict_model import InvalidTableError
from ..studies.text.toml_positions import KeyPath, toml_comment, toml_table
from ..studies.text.units import plural

if TYPE_CHECKING:
    from ..engine.core.resources import Machine

SEEDS = 3
"""The number of seeds of every request if the study has only one."""

MODEL, CHANGE, AS_IS = "model", "change", "unchanged"
"""The labels of the written cells, and the change of an unchanged model."""

RequestKind = Literal["part", "neighbour", "baseline", "setting", "seeds"]

HEADINGS: Mapping[RequestKind, str] = {
    "part": "Parts never removed",
    "neighbour": "Simpler blocks never tried",
    "baseline": "The baseline at another learning rate",
    "setting": "Settings never varied",
    "seeds": "Cells with one seed",
}
"""The heading of each kind of request, in listing order."""

_RATE: KeyPath = ("train", "optimizer", "lr")
_SETTINGS: Mapping[KeyPath, tuple[object, ...] | None] = {
    D_MODEL_PATH: None,
    RECIPE_PATH: None,
    ("task", "length"): None,
    ("task", "lengths"): None,
    ("task", "context"): None,
    ("train", "lengths"): None,
    ("model", "norm"): ("pre", "post"),
    ("model", "norm_kind"): ("layer_norm", "rms_norm"),
    ("model", "dropout"): (0.0, 0.1),
    ("train", "schedule", "name"): ("constant", "cosine"),
    ("train", "optimizer", "weight_decay"): (0.0, 0.1),
    ("train", "clip_norm"): (None, 1.0),
    ("train", "batch_size"): None,
}
"""Settings that a reviewer asks for; of the recipe, it is the depth.

Some have two values: the first that a model lacks is requested. For the others, half and twice are.
"""


class MissingError(ActivememError):
    """Error if the missing ablations of a study cannot be found or written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedCell:
    """A cell to train for a request: a model of the study with one change.

    `model` and `change` are their labels. `tables` are the study file's tables with all holes filled,
    and `settings` are those of one seed.
    """

    model: str
    change: str
    tables: Mapping[str, Any]
    settings: TrialSettings

    def trials(self, study: str, seeds: Sequence[int]) -> list[Trial]:
        """Return one trial of the cell for each seed."""
        labels: dict[str, Level] = {MODEL: self.model, CHANGE: self.change}
        return [
            Trial(study=study, levels={**labels, SEED: seed}, settings=self.settings.with_seed(seed))
            for seed in seeds
        ]

    @property
    def recipe(self) -> Recipe:
        """Return the parsed recipe of the cell's model."""
        return read_recipe(self.settings.model.recipe)

    def changed(self, path: KeyPath, value: object, change: str) -> RequestedCell | None:
        """Return a copy with another value of a key, or without it for None; None if it does not fit."""
        tables = deepcopy(dict(self.tables))
        table: dict[str | int, Any] = tables  # pyright: ignore[reportAssignmentType] -- keys of paths are texts here
        for key in path[:-1]:
            table = table.setdefault(key, {})
        if value is None:
            table.pop(path[-1], None)
        else:
            table[path[-1]] = value
        try:
            settings = resolve_settings(Template(tables=tables), {})
        except InvalidTableError:
            return None
        return RequestedCell(model=self.model, change=change, tables=tables, settings=settings)

    def with_root(self, root: Value) -> RequestedCell | None:
        """Return a copy of this cell with another recipe; None if the recipe does not fit."""
        try:
            recipe = parse(render(root))
        except RecipeError:
            return None
        return self.changed(RECIPE_PATH, recipe.text, describe_difference(self.recipe.root, recipe.root))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request that a reviewer may make, with the cells to train for it."""

    kind: RequestKind
    change: str
    cells: tuple[RequestedCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCost:
    """A requested ablation with its cost.

    `change` is what it changes in its `models`. `kind` is part, neighbour, baseline, setting or seeds.
    `trials` are the needed trials that are not in the store, the study or an earlier request; `flops` and
    `estimate` are their costs.
    """

    kind: RequestKind
    change: str
    models: tuple[str, ...]
    recipes: tuple[str, ...]
    trials: tuple[str, ...]
    flops: float
    estimate: TimeEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingAblations:
    """The requests that a reviewer may make for a study.

    `models` has a cell for each unchanged model. All cells have the same `seeds`. `held` has the fixed level
    of each other factor with several levels.
    """

    study: Study
    seeds: tuple[int, ...]
    held: Mapping[str, Level]
    models: tuple[RequestedCell, ...]
    requests: tuple[Request, ...]

    @property
    def name(self) -> str:
        """Return the name of the study that trains the requested cells."""
        return f"{self.study.name}-missing"

    def costs(self, store: Store, machine: Machine | None = None) -> list[RequestCost]:
        """Return the cost of each request: the cost of its trials that the store lacks.

        With a `Machine`, training times that are unknown are measured on it.
        """
        measure = None
        if machine is not None:  # by the engine, as reporting trains nothing
            measure = import_module("activemem.engine.run.planning").measure_steps(machine, {})
        outcomes = stored_outcomes(store, self.study)
        done = {*outcomes["trial"].to_list(), *(trial.id for trial in self.study.trials)}
        by_request = [
            [trial for cell in request.cells for trial in cell.trials(self.name, self.seeds)]
            for request in self.requests
        ]
        # the trials of the study that `study_text` writes, so that its plan has the same times
        bases = [trial for model in self.models for trial in model.trials(self.name, self.seeds)]
        every = [*bases, *(trial for trials in by_request for trial in trials)]
        estimator = TimeEstimator(outcomes, every, measure)
        found: list[RequestCost] = []
        for request, trials in zip(self.requests, by_request, strict=True):
            left = {trial.id: trial for trial in trials if trial.id not in done}
            done |= left.keys()
            found.append(
                RequestCost(
                    kind=request.kind,
                    change=request.change,
                    models=tuple(dict.fromkeys(cell.model for cell in request.cells)),
                    recipes=tuple(dict.fromkeys(cell.settings.model.recipe for cell in request.cells)),
                    trials=tuple(left),
                    flops=sum(max_trial_flops(each.settings) for each in left.values()),
                    estimate=total_time(map(estimator.estimate, left.values())),
                )
            )
        return found

    def study_text(self, notes: Sequence[str]) -> str:
        """Return a study file with the study's models and all requested cells, with each request's note."""
        bases = [(cell, "a model of the study") for cell in self.models]
        asked = [
            (cell, note) for request, note in zip(self.requests, notes, strict=True) for cell in request.cells
        ]
        cells = list({(cell.model, cell.change): (cell, note) for cell, note in [*asked, *bases]}.values())
        cells.sort(key=lambda each: each[0].change != AS_IS)
        tables, levels = _merge_cells([cell for cell, _ in cells])
        columns = {"columns": MODEL} if self._has_models else {}
        shown = {"value": next(iter(self.study.metrics), "loss"), "baseline": AS_IS}
        table = {"name": "missing", "rows": CHANGE, **columns, **shown}
        if self.study.own_corpus is not None:
            data = self.study.document.data
            tables["task"] |= {
                key: data["task"][key] for key in ("corpus", "tokenizer") if key in data["task"]
            }
        labels = (MODEL, CHANGE) if self._has_models else (CHANGE,)
        having: dict[str, list[str]] = {}  # the changes of the cells with each level
        for (cell, _), own in zip(cells, levels, strict=True):
            for name in own:
                having.setdefault(name, []).append(cell.change)
        when = {
            name: {CHANGE: list(dict.fromkeys(changes))}
            for name, changes in having.items()
            if len(changes) < len(cells)
        }
        return "\n".join(
            [
                toml_comment(
                    f"Missing ablations of {self.study.name}, found by activemem study missing. "
                    "Delete the cells that you do not need."
                ),
                "",
                toml_table(
                    "[study]",
                    {
                        "name": self.name,
                        "title": f"Missing ablations: {one_line(self.study.title)}",
                        "labels": labels,
                    },
                ),
                *(toml_table(f"[{name}]", tables[name]) for name in TRIAL_TABLES),
                toml_table("[factors]", {SEED: self.seeds}),
                *([toml_table("[when]", when)] if when else ()),
                *(
                    toml_table(
                        f"[[cells]]  # {note}", {**{name: getattr(cell, name) for name in labels}, **own}
                    )
                    for (cell, note), own in zip(cells, levels, strict=True)
                ),
                toml_table("[[table]]", table),
            ]
        )

    @property
    def _has_models(self) -> bool:
        return len({cell.model for request in self.requests for cell in request.cells}) > 1


def find_missing(study: Study) -> MissingAblations:
    """Return the ablations that a grid lacks and a reviewer may request. Raise MissingError for a search."""
    if study.search is not None:
        raise MissingError(
            f"{study.name} is a search: first write the study of its best points, with activemem study "
            "promote"
        )
    first_seed, *others = study.seeds
    seeds = study.seeds if others else tuple(range(first_seed, first_seed + SEEDS))
    first = [cell for cell in study.cells if cell.levels[SEED] == first_seed]
    bases = _base_cells(study, first)
    models = [_cell_of(study, label, AS_IS, trial) for label, trial in bases.items()]
    trained = {read_recipe(trial.settings.model.recipe).identity for trial in first}
    if (matched := study.design.matched_size) is not None:
        # a recipe at the matched size of another cell only differs in a size, so that no reviewer asks for it
        others = (each.size for each in study.size_matches.values() if each.size is not None)
        sizes = {matched.size, *others}
        for cell in bases.values():
            values = {name: level for name, level in cell.levels.items() if level != ABSENT}
            for size in sizes:
                with suppress(RecipeError):  # the size of another cell may not fit, as an odd width of heads
                    trained.add(read_recipe(study.template.recipe({**values, matched.name: size})).identity)
    # both of the first two add to `trained`, so that a recipe is requested only once
    requests = [
        *(request for model in models for request in _parts(model, trained)),
        *(request for model in models for request in _simpler_blocks(model, trained)),
        *_settings(models, first),
        *(() if others else _more_seeds(study, bases, first)),
    ]
    names = _recipe_factors(study)
    held = {
        name: level
        for name, level in next(iter(bases.values())).levels.items()
        if name not in (*names, SEED) and len(study.factors[name]) > 1 and level != ABSENT
    }
    return MissingAblations(
        study=study, seeds=seeds, held=held, models=tuple(models), requests=tuple(requests)
    )


def _recipe_factors(study: Study) -> list[str]:
    names = study.template.names_at(RECIPE_PATH, study.factors)
    return [name for name in names if any(isinstance(level, str) for level in study.factors.get(name, ()))]


def _model_name(study: Study, names: Sequence[str], trial: Trial) -> str:
    """Return a model's name: the short names of what varies in its recipe, or the whole recipe."""
    varied = [(study.factors[name], trial.levels[name]) for name in names if len(study.factors[name]) > 1]
    parts = [short_level_names(levels)[levels.index(each)] for levels, each in varied if each != ABSENT]
    return ", ".join(parts) or one_line(study.template.texts[RECIPE_PATH])


def _base_cells(study: Study, cells: Sequence[Trial]) -> dict[str, Trial]:
    """Map each model's name to its cell that is most like the baseline, the baseline's model first."""
    names = _recipe_factors(study)
    standard = study.design.baseline_of({name: levels[0] for name, levels in study.factors.items()})

    def differing(trial: Trial, among: Iterable[str]) -> int:
        return sum(level_key(trial.levels[name]) != level_key(standard[name]) for name in among)

    groups: dict[str, list[Trial]] = {}
    for trial in cells:
        groups.setdefault(_model_name(study, names, trial), []).append(trial)
    found = {
        label: min(trials, key=lambda trial: differing(trial, trial.levels))
        for label, trials in groups.items()
    }
    return dict(sorted(found.items(), key=lambda each: differing(each[1], names) > 0))


def _cell_of(study: Study, model: str, change: str, trial: Trial) -> RequestedCell:
    """Convert a trial to a requested cell with all holes filled, including the matched size."""
    levels = trial.levels
    if (matched := study.design.matched_size) is not None:
        match = study.size_matches.get(trial.id)
        levels[matched.name] = matched.size if match is None or match.size is None else match.size
    tables = study.template.fill(levels)
    tables["model"]["recipe"] = trial.settings.model.recipe
    filled = resolve_settings(Template(tables=tables), {}).train.model_dump(mode="json")
    own = trial.settings.train.model_dump(mode="json")
    tables["train"] |= {key: value for key, value in own.items() if value != filled[key]}  # as a ladder does
    settings = resolve_settings(Template(tables=tables), {})
    return RequestedCell(model=model, change=change, tables=tables, settings=settings)


def _parts(model: RequestedCell, trained: set[str]) -> Iterator[Request]:
    """Yield requests for a model without one part of its recipe.

    There is a request for each part. The new recipes are added to `trained`. An argument is a part if
    removing it adds no parameters. This includes parts that a block has by default.
    """
    weights, whole = parameter_count(model.settings), model.recipe
    without = {recipe.text: "" for recipe in ablations(whole)}
    for block in {identity(node): node for node in walk(whole.root) if isinstance(node, BlockNode)}.values():
        for change, other in without_defaults(block).items():
            without.setdefault(render(_replaced(whole.root, block, other)), change)
    for text, change in without.items():
        try:
            recipe = parse(text)
        except RecipeError:
            continue
        known = change or describe_difference(whole.root, recipe.root)
        cell = None if recipe.identity in trained else model.changed(RECIPE_PATH, recipe.text, known)
        if cell is None or parameter_count(cell.settings) > weights or _is_null(model, recipe):
            continue
        trained.add(recipe.identity)
        yield Request(kind="part", change=cell.change, cells=(cell,))


def _is_null(model: RequestedCell, recipe: Recipe) -> bool:
    """Return whether recipes differ only in spans (windows) that are longer than every sequence."""
    settings = model.settings
    if settings.task.interface.past or settings.train.curriculum is not None:
        return False
    length = sequence_tokens(settings)

    def bounded(node: Value) -> str:
        for block in walk(node):
            span = dict(block.arguments).get("span") if isinstance(block, BlockNode) else None
            if isinstance(block, BlockNode) and isinstance(span, int) and span >= length:
                others = tuple(each for each in block.arguments if each[0] != "span")
                node = _replaced(node, block, BlockNode(block.name, others))
        return identity(node)

    return bounded(model.recipe.root) == bounded(recipe.root)


def _simpler_blocks(model: RequestedCell, trained: set[str]) -> Iterator[Request]:
    """Yield requests that replace one block of a model by a simpler block.

    The simpler block is the nearest one that has fewer parameters and no more FLOPs. Arguments that both
    blocks have keep their values. The new recipes are added to `trained`.
    """
    root = model.recipe.root
    weights, flops = parameter_count(model.settings), step_flops(model.settings)
    for block in {identity(node): node for node in walk(root) if isinstance(node, BlockNode)}.values():
        given = dict(block.arguments)
        for name in spec_of(block.name).simpler:
            parameters = spec_of(name).parameters
            if any(each.default is REQUIRED and each.name not in given for each in parameters):
                continue
            kept = tuple((each.name, given[each.name]) for each in parameters if each.name in given)
            cell = model.with_root(_replaced(root, block, BlockNode(name, kept)))
            if cell is None or not (
                parameter_count(cell.settings) < weights and step_flops(cell.settings) <= flops
            ):
                continue
            if (own := cell.recipe.identity) not in trained:
                trained.add(own)
                yield Request(kind="neighbour", change=cell.change, cells=(cell,))
            break


def _replaced(node: Value, old: BlockNode, new: BlockNode) -> Value:
    if isinstance(node, BlockNode):
        return new if identity(node) == identity(old) else node
    return rebuild(node, [_replaced(part, old, new) for part in children(node)])


def _settings(models: Sequence[RequestedCell], cells: Sequence[Trial]) -> Iterator[Request]:
    """Yield requests for other values of settings that are equal in all cells of the study.

    The learning rate of the baseline comes first: 1/3 and 3 times of it, in the cells of its model. Then
    follow that rate in all other models, and half and twice the width, depth, length and batch, and another
    norm, dropout, schedule, weight decay and bound of the gradient.
    """
    baseline, *others = models
    rate, own = baseline.settings.train.optimizer.lr, baseline.recipe.identity
    rates = [
        (read_recipe(each.settings.model.recipe).identity, each.settings.train.optimizer.lr) for each in cells
    ]
    near = [float(f"{each:.1g}") for each in (rate / 3, 3 * rate)]
    if len({each for identity, each in rates if identity == own}) == 1:
        yield from _request("baseline", [baseline], _RATE, near)
    if others and len({each for _, each in rates}) == 1:
        yield from _request("setting", others, _RATE, near)
    for path, choices in _SETTINGS.items():
        if path == RECIPE_PATH:
            if len({_depth(read_recipe(trial.settings.model.recipe)) for trial in cells}) == 1:
                for scale in (0.5, 2.0):
                    deeper = tuple(cell for model in models if (cell := _at_depth(model, scale)) is not None)
                    if deeper:
                        yield Request(kind="setting", change=deeper[0].change, cells=deeper)
        elif len({repr(_value_at(trial.settings, path)) for trial in cells}) == 1:
            value = _value_at(models[0].settings, path)
            if choices is not None:
                values = [each for each in choices if each != value][:1]
            elif isinstance(value, int):
                values = [each for each in (value // 2, 2 * value) if each > 0]
            elif value is None:
                values = []
            else:
                low, high = value
                halved = [[min(low, high // 2), high // 2]] if high > 1 else []
                values = [*halved, [high if low == high else low, 2 * high]]
            yield from _request("setting", models, path, values)


def _request(
    kind: RequestKind, models: Sequence[RequestedCell], path: KeyPath, values: Iterable[object]
) -> Iterator[Request]:
    """Yield a request for each new value of a key of study files, in all models that can have the value."""
    key = path[-2] if path[-1] == "name" else path[-1]
    for value in values:
        change = f"− {key}" if value is None else f"{key} = {value}"
        cells = tuple(cell for each in models if (cell := each.changed(path, value, change)) is not None)
        if cells:
            yield Request(kind=kind, change=change, cells=cells)


def _depth(recipe: Recipe) -> int | None:
    """Return how many layers a recipe has: the repetitions of its block; None without a repetition."""
    root = recipe.root.body if isinstance(recipe.root, TiedNode) else recipe.root
    return root.count if isinstance(root, RepeatNode) and isinstance(root.count, int) else None


def _at_depth(model: RequestedCell, scale: float) -> RequestedCell | None:
    whole = model.recipe.root
    repeat = whole.body if isinstance(whole, TiedNode) else whole
    layers = _depth(model.recipe)
    if layers is None or int(layers * scale) < 1 or not isinstance(repeat, RepeatNode):
        return None
    other = RepeatNode(int(layers * scale), repeat.body)
    return model.with_root(TiedNode(other) if isinstance(whole, TiedNode) else other)


def _value_at(settings: TrialSettings, path: KeyPath) -> Any:  # noqa: ANN401 -- a setting can be anything
    found: Any = settings
    for key in path:
        found = getattr(found, str(key), None)
    return found


def _more_seeds(study: Study, bases: Mapping[str, Trial], cells: Sequence[Trial]) -> Iterator[Request]:
    names = _recipe_factors(study)
    found: list[RequestedCell] = []
    for trial in cells:
        model = _model_name(study, names, trial)
        differing = [
            f"{name} = {level_name(level)}"
            for name, level in trial.levels.items()
            if name not in (*names, SEED) and level_key(level) != level_key(bases[model].levels[name])
        ]
        found.append(_cell_of(study, model, ", ".join(differing) or AS_IS, trial))
    yield Request(kind="seeds", change=plural(SEEDS, "seed"), cells=tuple(found))


def _merge_cells(cells: Sequence[RequestedCell]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Merge the tables of all cells into one set of tables with holes.

    Holes replace the values in which the cells differ. Also return each cell's levels, which fill
    them. Raise MissingError if levels cannot express how the tables differ.
    """
    wholes = [{name: _completed(name, cell, cells) for name in TRIAL_TABLES} for cell in cells]
    merged, levels = deepcopy(wholes[0]), [dict[str, Any]() for _ in cells]
    taken = {MODEL, CHANGE, SEED}
    for path, values in _differences(dict(enumerate(wholes)), (), len(cells)):
        parts = [str(key + 1) if isinstance(key, int) else str(key) for key in path]
        count = 2 if isinstance(path[-1], int) else 1  # a position in a list is no name by itself
        while (name := "_".join(parts[-count:])) in taken:
            count += 1
        taken.add(name)
        for cell, value in values.items():
            levels[cell][name] = value
        table: Any = merged
        for key in path[:-1]:
            table = table[key]
        is_table = isinstance(next(iter(values.values())), Mapping)
        table[path[-1]] = {"name": f"{{{name}}}"} if is_table else f"{{{name}}}"
    return merged, levels


def _differences(
    values: Mapping[int, Any], path: KeyPath, count: int
) -> Iterator[tuple[KeyPath, Mapping[int, Any]]]:
    """Yield the paths below `path` at which the cells differ, with the value of each cell that has one.

    `values` has the values at `path` by the number of their cell, of which there are `count`. Tables of
    several names have labels.
    """
    every = list(values.values())
    has_all = len(values) == count
    if has_all and all(value == every[0] for value in every):
        return
    if all(isinstance(value, str | int | float) for value in every):
        yield path, values
    elif has_all and all(isinstance(value, Mapping) for value in every):
        if len({value.get("name") for value in every}) > 1:
            yield path, dict(zip(values, _labelled(every), strict=True))
            return
        for key in dict.fromkeys(key for value in every for key in value):
            having = {cell: value[key] for cell, value in values.items() if key in value}
            yield from _differences(having, (*path, key), count)
    elif has_all and all(isinstance(value, list) and len(value) == len(every[0]) for value in every):
        for at in range(len(every[0])):
            yield from _differences({cell: value[at] for cell, value in values.items()}, (*path, at), count)
    else:
        raise MissingError(
            f"one study file cannot express cells that differ in {'.'.join(map(str, path))}: "
            "select fewer levels, for example with --set 'factors.task=[\"…\"]'"
        )


def _completed(name: str, cell: RequestedCell, cells: Sequence[RequestedCell]) -> dict[str, Any]:
    """Return a table of one cell, such as [train], with every key that this table has in any cell.

    Missing keys get default values, so that a hole can express the cells' differences.
    """
    table = dict(cell.tables[name])
    if "name" in table and len({str(each.tables[name].get("name")) for each in cells}) > 1:
        return table
    for key in dict.fromkeys(key for each in cells for key in each.tables[name]):
        if key not in table and (value := _value_at(cell.settings, (name, key))) is not None:
            if isinstance(value, BaseModel):
                own = value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
                value = {"name": getattr(value, "name", None)} | own
            table[key] = list(value) if isinstance(value, tuple) else value
    return table


def _labelled(tables: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    distinct = [table for at, table in enumerate(tables) if table not in tables[:at]]
    names = [table["name"] for table in distinct]
    labels = [
        name if names.count(name) == 1 else f"{name}-{names[:place].count(name) + 1}"
        for place, name in enumerate(names)
    ]
    return [{"label": labels[distinct.index(table)], **table} for table in tables]
