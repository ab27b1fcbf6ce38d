"""Base classes for kinds of tables and figures.

A kind is a class with the keys of such a `[[table]]` or `[[curve]]`, and a function from these keys to the
result. In a plug-in, the function is a method of the class. For a kind of this package, it is in the kind's
module of `reporting/kinds/`, so that reading a study loads no code for results.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from ...errors import nearest_hint
from ..catalog.metrics import (
    METRICS_AND_COSTS,
    NEEDS_PICK_BY,
    is_timed,
    metric_family,
    pick_faults,
    unknown_metric,
)
from ..schema.design import MAX_TRIALS, Design
from ..schema.factors import (
    ABSENT,
    SEED,
    NamedLevels,
    as_list,
    filled_levels,
    has_level,
    level_key,
    level_name,
    level_text,
)
from ..schema.settings import Level, Name, Names
from ..text.strict_model import StrictModel
from ..text.toml_positions import KeyPath
from ..text.units import listed, number_range

if TYPE_CHECKING:
    from ..catalog.published import PublishedNumbers
    from ..resolve.trial import Trial

Spread = Literal["sd", "se", "ci"]
"""The spread around a centre: standard deviation, standard error, or confidence interval."""

Role = Literal["table", "curve"]
"""The array of tables in a study file that defines the result."""

MAX_SERIES = 6
"""The largest number of lines that a reader can distinguish."""

KeyFault = tuple[KeyPath, str]
"""The path of a key in a table, and its fault."""


class ResultKeys(StrictModel):
    """Base class for the keys of a `[[table]]` or `[[curve]]`, and their checks."""

    kind: Any
    """the kind of result"""
    name: Name
    """the name for `--table` or `--curve`"""
    caption: str | None = None
    """the caption, or its beginning (default: the metric's title)"""
    select: dict[str, Any] = Field(default={})
    """for a factor, the level or list of levels to include"""

    of_search: ClassVar[bool] = False
    """whether the kind shows the points of a search instead of the cells of a grid"""

    @property
    def needs_history(self) -> bool:
        """Return whether the result needs the history of metrics, not only their final values.

        The history has the values after earlier epochs, and those of single indices, as in `bleu[10-20]`.
        """
        return False

    @property
    def level_keys(self) -> Mapping[str, str | None]:
        """Return the keys whose value must name a level, each with the factor of this level."""
        fields = type(self).model_fields
        series = getattr(self, "series" if "series" in fields else "x", None)
        factors = {"accent": series, "baseline": getattr(self, "rows", series)}
        return {key: factor for key, factor in factors.items() if key in fields}

    @property
    def published_names(self) -> Sequence[str]:
        """Return the names of the papers' tables that this result shows, as the study file gives them."""
        return ()

    def faults(self, design: Design, published: PublishedNumbers) -> Iterable[KeyFault]:
        """Return the faults of these keys in a study, each with its path."""
        raise NotImplementedError

    def level_faults(self, factors: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
        """Yield a fault for each key that names an unknown level, or a level that `select` leaves out."""
        levels = selected_levels(self.select, factors)
        for key, factor in self.level_keys.items():
            if (name := getattr(self, key)) is None:
                continue
            if factor not in levels:
                yield (key,), "set series to the factor that has this level"
            elif message := level_name_fault(name, levels[factor], factor):
                yield (key,), message

    def series_faults(self, factor: str, factors: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
        """Yield a fault if a figure with a line for each level would have more than MAX_SERIES lines."""
        count = len(selected_levels(self.select, factors)[factor])
        if count > MAX_SERIES:
            yield ("series",), f"expected at most {MAX_SERIES} levels, got {count}: select some of them"

    def named_metrics(self) -> Iterator[KeyFault]:
        """Yield every metric that the keys name, with the path of its key."""
        value: str | tuple[str, ...] = getattr(self, "value", ())
        names = (value,) if isinstance(value, str) else value
        for number, name in enumerate(names):
            yield ("value",) if len(names) == 1 else ("value", number), name

    def shows(self, trial: Trial) -> bool:
        """Return whether `select` includes this trial. True for kinds without the key `select`."""
        return is_selected(self.select, trial.levels)

    def timed_metrics(self) -> list[str]:
        """Return the metrics and axes that depend on the speed of the device, such as seconds."""
        return [name for _, name in self.named_metrics() if is_timed(name)]

    def with_levels(self, design: Design) -> Self:
        """Replace short names of levels by complete levels: "sa" by `sa(heads=4)`.

        `select = { mixer = "sa" }` becomes the level `sa(heads=4)` if no other level matches. A name that
        matches no level, or several, stays, and the checks report it.
        """
        known, updates = design.known_levels, dict[str, Any]()
        if self.select:
            updates["select"] = {
                name: find_levels(kept, known.get(name, ())) for name, kept in self.select.items()
            }
        levels = selected_levels(updates.get("select", {}), known)
        for key, factor in self.level_keys.items():
            if (name := getattr(self, key)) is not None:
                updates[key] = find_levels(name, levels.get(factor or "", ()))
        return self.model_copy(update=updates)


class TableKind(ResultKeys):
    """Base class for one kind of table."""

    @property
    def studies_beside(self) -> tuple[str, ...]:
        """The studies whose columns the table has side by side, read from the store; () for one study."""
        return ()


class SpreadTable(TableKind):
    """Base class of tables with means and the spread around them."""

    spread: Spread = "sd"
    """the spread after the centre: standard deviation, standard error, or 95 % confidence interval"""


class CurveKind(ResultKeys):
    """Base class for one kind of figure."""


Place = tuple[str, ...]
"""The levels of a cell as texts (`level_key`), without its seed."""


class PickKeys(ResultKeys):
    """The study-file keys that let a metric pick levels, and their checks."""

    over: Names = ()
    """factors such as a learning rate, of which each cell shows one level: the one that `pick_by` picks"""
    pick_by: str | None = None
    """the metric, preferably of the dev split, whose mean over seeds picks the level of `over`"""

    def named_metrics(self) -> Iterator[KeyFault]:
        """Yield the metrics that the keys name, with the paths of their keys."""
        yield from super().named_metrics()
        if self.pick_by is not None:
            yield ("pick_by",), self.pick_by

    def over_faults(self, factors: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
        """Yield the faults of `over` and `pick_by`."""
        yield from factor_faults(((("over", number), name) for number, name in enumerate(self.over)), factors)
        if SEED in self.over:
            yield ("over", self.over.index(SEED)), "a seed is not picked: remove seed from over"
        if self.over and self.pick_by is None:
            yield ("over",), NEEDS_PICK_BY
        for message in pick_faults(self.pick_by, self.over):
            yield ("pick_by",), message


def place_of(levels: Mapping[str, Level], over: Sequence[str] = ()) -> Place:
    """Return the levels of a cell as texts, without its seed and the factors in `over`."""
    return tuple(level_key(level) for name, level in levels.items() if name not in (SEED, *over))


def find_levels(named: Any, levels: Sequence[Level]) -> Any:  # noqa: ANN401 -- TOML holds anything
    """Replace a level's name, or each name in a list, by its level.

    A name that matches no level, or several, is returned unchanged.
    """
    names = NamedLevels(levels, "here")
    if isinstance(named, list):
        return [names.find(each) if names.has(each) else each for each in named]
    return names.find(named) if names.has(named) else named


def column_text(name: str, texts: Sequence[str]) -> str:
    """Complete the level in the name of a column, which a user may write in short.

    A column is a level, a metric, or `metric:level`. A level may be written in short.
    """
    metric, colon, level = name.partition(":")
    return f"{metric}:{find_levels(level, texts)}" if colon else str(find_levels(name, texts))


_LENGTHS = ("length", "lengths", "test_length", "test_lengths")


def factor_faults(
    named: Iterable[tuple[KeyPath, str]],
    factors: Iterable[str],
    special: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[KeyFault]:
    """Yield a fault for each unknown factor, and for each factor that is named twice.

    `named` has the paths of keys with the factors that they name. `special` has, for some keys, further valid
    values.
    """
    met: dict[str, str] = {}
    for path, name in named:
        key = str(path[0])
        known = [*factors, *special.get(key, ())]
        if name not in known:
            near = nearest_hint(name, known)
            if name in _LENGTHS and "index" in special.get(key, ()):
                near = f'; the test lengths of a task are {key} = "index"'
            yield path, f"unknown factor '{name}'{near}"
        elif name in met:
            yield path, f"{met[name]} already has the factor '{name}': choose another one"
        met.setdefault(name, key)


def metric_faults(
    value: Sequence[str], digits: Collection[str] = (), others: Collection[str] = ()
) -> Iterator[KeyFault]:
    """Yield faults of metrics and of their `digits`.

    A metric is unknown or repeated, or `digits` names one that is not shown. An indexed metric is looked up
    by its family.
    """
    for number, name in enumerate(value):
        path: KeyPath = ("value",) if len(value) == 1 else ("value", number)
        if metric_family(name) not in METRICS_AND_COSTS:
            yield path, unknown_metric(name)
        elif name in value[:number]:
            yield path, f"the metric '{name}' is listed twice"
    shown = {*value, *others}
    for name in digits:
        if name not in shown:
            yield ("digits", name), f"unknown metric '{name}'{nearest_hint(name, shown)}"


def selected_levels(
    select: Mapping[str, Any], factors: Mapping[str, tuple[Level, ...]]
) -> dict[str, tuple[Level, ...]]:
    """Return, for every factor, the levels that `select` includes."""
    return {
        factor: tuple(level for level in levels if _keeps(select, factor, level))
        for factor, levels in factors.items()
    }


def selected_seeds(select: Mapping[str, Any], factors: Mapping[str, tuple[Level, ...]]) -> str:
    """Return which seeds `select` includes, of which, such as `seed 2 of 0 to 2 (selected)`; "" for all.

    `factors` are those of the study. Readers must know a choice among seeds: the best of several is no mean.
    """
    known = sorted(level for level in factors[SEED] if isinstance(level, int))
    kept = sorted(level for level in known if _keeps(select, SEED, level)) if SEED in select else known
    if kept == known or not kept:
        return ""
    is_range = known[-1] - known[0] == len(known) - 1
    of = number_range(known) if is_range else listed(known)
    return f"seed{'s' * (len(kept) > 1)} {listed(kept)} of {of} (selected)"


def is_selected(select: Mapping[str, Any], levels: Mapping[str, Level]) -> bool:
    """Return whether `select` includes a trial with these levels, ignoring factors that the trial lacks."""
    return not select or all(_keeps(select, factor, levels[factor]) for factor in select if factor in levels)


def select_faults(
    select: Mapping[str, Any], factors: Mapping[str, tuple[Level, ...]]
) -> Iterator[tuple[KeyPath, str]]:
    """Yield the faults of a `select`: unknown factors or levels, and empty lists."""
    for factor, kept in select.items():
        if factor not in factors:
            yield ("select", factor), f"unknown factor '{factor}'{nearest_hint(factor, factors)}"
        elif kept == []:
            yield ("select", factor), "expected at least one level, got an empty list"
        else:
            for index, level in enumerate(as_list(kept)):
                if message := level_name_fault(level, factors[factor], factor):
                    yield (
                        (("select", factor, index) if isinstance(kept, list) else ("select", factor)),
                        message,
                    )


def level_name_fault(name: object, known: tuple[Level, ...], factor: str) -> str:
    """Return an error message unless the factor has exactly one level of this name, else ""."""
    return NamedLevels(known, f"of {factor}").fault(name)


def _keeps(select: Mapping[str, Any], factor: str, level: Level) -> bool:
    return factor not in select or level == ABSENT or has_level(as_list(select[factor]), level)


def fixed_levels(
    trials: Collection[Mapping[str, Level]], shown: Collection[str], design: Design
) -> dict[str, Level]:
    """Return the factors with the same level in all these trials, and that level.

    Factors that have only one level in the study are left out. `shown` are the factors that are visible
    anyway.
    """
    found: dict[str, Level] = {}
    for name, known in design.known_levels.items():
        if name in shown or len(known) < 2:
            continue
        levels = {level_key(levels[name]): levels[name] for levels in trials if name in levels}
        if len(levels) == 1 and level_key(ABSENT) not in levels:
            found[name] = next(iter(levels.values()))
    return found


def describe_levels(levels: Mapping[str, Level]) -> str:
    """Describe levels in a sentence: `norm = pre, dropout = 0.1`."""
    return ", ".join(f"{name} = {level_name(level)}" for name, level in filled_levels(levels).items())


def mixed_levels_fault(
    shown: Collection[str], select: Mapping[str, Any], design: Design, *, over_hint: str = ""
) -> str:
    """Return an error message if one cell of a table or figure would mix levels of a factor.

    Return "" otherwise. The message says how to mend it. `shown` are the factors that determine a trial's
    cell; seeds are always mixed. `over_hint` is the other way to mend it, with {} in place of the factors.
    """
    levels = selected_levels(select, design.factors)
    mixed = {name: levels[name] for name in levels if name not in (*shown, SEED) and len(levels[name]) > 1}
    if mixed and (design.conditions or not design.is_grid):
        mixed = _mixed_in_one_place(shown, select, list(mixed), design)
    if not mixed:
        return ""
    got = " and ".join(f"{name} ({', '.join(map(level_text, mixed[name]))})" for name in mixed)
    first = ", ".join(f"{name} = {json.dumps(each[0], ensure_ascii=False)}" for name, each in mixed.items())
    named = ", ".join(map(json.dumps, mixed))
    other = over_hint and f", or {over_hint.format(named if len(mixed) == 1 else f'[{named}]')}"
    one = "one level" if len(mixed) == 1 else "one level of each"
    return f"this would mix the levels of {got}: choose {one}, as in select = {{ {first} }}{other}"


def _mixed_in_one_place(
    shown: Collection[str], select: Mapping[str, Any], others: list[str], design: Design
) -> dict[str, tuple[Level, ...]]:
    """Return the levels that differ in one cell of a table, without factors that follow from the others."""
    if design.count() > MAX_TRIALS:
        return {}  # `build_grid` reports too many cells
    cells = [cell for cell in design.cells() if is_selected(select, cell)]

    def places(names: Iterable[str]) -> list[tuple[str, ...]]:
        return [tuple(level_key(cell[name]) for name in names) for cell in cells]

    levels_at: dict[tuple[str, ...], dict[str, dict[str, Level]]] = {}
    for place, cell in zip(places(shown), cells, strict=True):
        for name in others:
            levels_at.setdefault(place, {}).setdefault(name, {})[level_text(cell[name])] = cell[name]
    worst = max(levels_at.values(), key=lambda factors: sum(map(len, factors.values())), default={})
    mixed = {name: tuple(levels.values()) for name, levels in worst.items() if len(levels) > 1}
    for name in reversed([*mixed]):
        kept = [*shown, *(other for other in mixed if other != name)]
        if len({*places(kept)}) == len({*places([*kept, name])}):
            del mixed[name]
    return mixed
