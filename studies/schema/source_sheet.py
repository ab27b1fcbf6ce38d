"""The table [source]: whether each setting is from the paper, its authors' program, ours, or fitted."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, Literal, cast, get_origin

from ...errors import hint
from ..catalog.optimisers import OPTIMIZERS, SCHEDULES, OwnOptimizerSettings, OwnScheduleSettings
from ..catalog.tasks import TASKS, require_task, task_names
from ..text.document import Diagnostics, iter_leaves
from ..text.strict_model import StrictModel, format_value, tables_in
from ..text.toml_positions import KeyPath
from ..text.units import plural
from .settings import BUDGET_KEYS, DecodeSettings, ModelSettings, TrainSettings

TABLE = "source"

Origin = Literal["paper", "program", "ours", "fitted"]
"""The origin of a setting: the paper, the program of its authors, or the study's author ("ours").

A "fitted" setting is also the author's, who chose it by results of the study's own cells.
"""

_TABLES = ("model", "task", "train", "recipes", "factors", "cells", "decode")
_TEXT = re.compile(r"(paper|program|ours|fitted): +(\S.*)")
_HOLE = re.compile(r"\{ *([A-Za-z]\w*) *\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The origin of a setting, such as the paper, with a detail.

    The detail is, for example, a section of the paper or a file of the paper's program. If the author of the
    study chose the value, the detail is the reason. That of a fitted setting begins with the cells by whose
    results it was chosen, as in a claim.
    """

    origin: Origin
    detail: str

    def __str__(self) -> str:
        return f"{self.origin}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedSetting:
    """A setting of a study, with the source of its value.

    `is_default` is true if the file states neither the value nor a source. `source` is None in a study
    without the table [source].
    """

    name: str
    value: object
    source: Source | None
    is_default: bool

    @property
    def text(self) -> str:
        """The value as text. A text stays as it is; any other value becomes JSON."""
        value = self.value
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSheet:
    """All settings of a study with their sources. Settings in the file come first, then default values.

    `fitted` has the entries of [source] whose settings were fitted: the detail of each by its place.
    """

    settings: tuple[SourcedSetting, ...]
    is_given: bool
    fitted: Mapping[KeyPath, str] = dataclass_field(default_factory=dict[KeyPath, str])

    def names(self, origin: Origin, *, is_default: bool = False) -> tuple[str, ...]:
        """Return the names of settings whose values come from this origin, such as the paper.

        These are settings that the study file has or, if `is_default` is true, those that it leaves out.
        """
        return tuple(
            setting.name
            for setting in self.settings
            if setting.source and setting.source.origin == origin and setting.is_default is is_default
        )

    def summary(self, study: str) -> str:
        """Return sentences on settings that are not from the paper or its program, and on fitted ones."""
        if not self.is_given:
            return "The study does not state the sources of its settings."
        ours, defaults = len(self.names("ours")), len(self.names("ours", is_default=True))
        ours += len(self.names("fitted"))
        counts = [plural(count, noun) for count, noun in ((ours, "setting"), (defaults, "default")) if count]
        if not counts:
            return "All settings are from the paper."
        verb = "is" if ours + defaults == 1 else "are"
        text = f"{' and '.join(counts)} {verb} not from the paper (activemem study show {study} --sources)."
        return " ".join(
            [text, *(f"{path[-1]} was fitted to {detail}." for path, detail in self.fitted.items())]
        )


def read_source_sheet(
    diagnostics: Diagnostics,
    data: Mapping[str, Any],
    as_written: Mapping[str, Any],
    variants: Mapping[str, Mapping[str, Mapping[str, Any]]],
) -> SourceSheet:
    """Return the source of every setting of a study.

    Report faults of its table `[source]`, if any. `data` has the tables with what expansions add to them, and
    `as_written` the same without overrides. `variants` has the tables of trials at each level of each factor
    that decides which keys there are. A value that other levels override is named as in `[task=recall]`.

    Every key that the file gives in [model], [task], [train], [recipes], [factors] and [decode] needs a
    source, and so do its cells. The source of a table applies to all its keys. A key whose value is a
    hole needs none: the values that fill the hole have sources. The study's author is the
    source of overrides, and of defaults without a source.
    """
    is_given = TABLE in data
    sources = dict(_read(diagnostics, (TABLE,), data[TABLE])) if is_given else {}
    given, written = _leaves(data), _leaves(as_written)
    kept, defaults = _at_levels(data, variants)
    _check_names(diagnostics, sources, [*given, *defaults])
    settings: list[SourcedSetting] = []
    fitted: dict[KeyPath, str] = {}
    for path, value in given.items():
        # the source of this key, or of the innermost table around it that has a source
        around = (path[:depth] for depth in range(len(path), 0, -1))
        place = next((each for each in around if each in sources), None)
        source = sources[place] if place else None
        hole = _HOLE.fullmatch(value) if isinstance(value, str) else None
        if hole and (source is None or source.origin != "fitted"):
            continue
        # the values that fill a hole
        filled: tuple[KeyPath, ...] = (("factors", hole[1]), ("cells",)) if hole else ()
        if any(given.get(each) != written.get(each) for each in (path, *filled)):
            source = Source(origin="ours", detail="set for this run")
        elif source is None and is_given:
            entry = f'add {".".join(map(str, path))} = "paper: section 3.1" to [source]'
            diagnostics.report(path, f'no source: {entry}, or "program: …", or "ours: …" with the reason')
        elif place and source and source.origin == "fitted":
            fitted[place] = source.detail
        settings += _settings(path, kept.get(path, {"": value}), source, is_default=False)
    for path, values in sorted(defaults.items(), key=lambda item: _TABLES.index(item[0][0])):
        source = sources.get(path) or (Source(origin="ours", detail="default") if is_given else None)
        if source and source.origin == "fitted":
            fitted[path] = source.detail
        settings += _settings(path, values, source, is_default=path not in sources)
    return SourceSheet(settings=tuple(settings), is_given=is_given, fitted=fitted)


def _settings(
    path: KeyPath, values: Mapping[str, object], source: Source | None, *, is_default: bool
) -> Iterator[SourcedSetting]:
    for at, value in values.items():
        name = ".".join(map(str, path)) + at
        yield SourcedSetting(name=name, value=value, source=source, is_default=is_default)


_ByLevel = dict[KeyPath, dict[str, object]]
"""The values of settings by levels such as `[task=recall]`, or by "" for a value that never changes."""


def _at_levels(
    data: Mapping[str, Any], variants: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> tuple[_ByLevel, _ByLevel]:
    """Return the given settings that some level replaces, and all defaults."""
    given, kept = _leaves(data), _ByLevel()
    defaults: _ByLevel = {path: {"": value} for path, value in _defaults(data, variants)}
    for factor, levels in variants.items():
        filled = {f"[{factor}={level}]": {**data, **tables} for level, tables in levels.items()}
        leaves = {at: _leaves(tables) for at, tables in filled.items()}
        further = {at: dict(_defaults(tables, variants)) for at, tables in filled.items()}
        for path, value in given.items():
            same = {at: value for at, inner in leaves.items() if inner.get(path) == value}
            if len(same) < len(leaves) and not _HOLE.search(str(value)):
                kept[path] = same
        for path in dict.fromkeys(path for inner in further.values() for path in inner):
            values = [every[path] for at in filled if path in (every := leaves[at] | further[at])]
            own = {at: inner[path] for at, inner in further.items() if path in inner}
            is_same = all(value == values[0] for value in values)
            defaults.setdefault(path, {"": values[0]} if is_same else own)
    return kept, defaults


def _leaves(data: Mapping[str, Any]) -> dict[KeyPath, object]:
    return dict(leaf for name in _TABLES if name in data for leaf in iter_leaves((name,), data[name]))


def _read(diagnostics: Diagnostics, path: KeyPath, value: object) -> Iterator[tuple[KeyPath, Source]]:
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, object]", value).items():
            yield from _read(diagnostics, (*path, key), inner)
        return
    match = _TEXT.fullmatch(value) if isinstance(value, str) else None
    if match is None or len(path) == 1:
        expected = "expected a text such as 'paper: section 3.1', 'program: train.py', 'ours: the reason'"
        example = "'fitted: loss[mixer=sa], among 1e-3 and 2e-3'"
        diagnostics.report(path, f"{expected} or {example}, got {format_value(value)}")
        return
    yield path[1:], Source(origin=cast("Origin", match[1]), detail=match[2])


def _check_names(diagnostics: Diagnostics, sources: Iterable[KeyPath], settings: Iterable[KeyPath]) -> None:
    """Report entries of [source] for settings that no task has, since overrides may change the task."""
    keys = {("task", key) for name in task_names() for key in require_task(name).settings.model_fields}
    known = {path[:depth] for path in (*settings, *keys) for depth in range(1, len(path) + 1)}
    names = [".".join(map(str, path)) for path in known]
    for path in sources:
        if path not in known and not any(path[: len(table)] == table for table in known if len(table) > 1):
            name = ".".join(map(str, path))
            is_quoted = name in names  # the dots are part of a quoted key
            told = (
                f"write {name} without quotes" if is_quoted else f"unknown setting {name}{hint(name, names)}"
            )
            diagnostics.report((TABLE, *path), told, key=True)


def _defaults(data: Mapping[str, Any], filled: Collection[str]) -> Iterator[tuple[KeyPath, object]]:
    """Yield the defaults of the keys that a study's tables leave out.

    A table that a factor in `filled` fills or names has none, and neither has `train.start`, without which
    weights are new, as in every paper.
    """
    schemas = [("model", ModelSettings), ("train", TrainSettings)]
    name = dict(iter_leaves((), {"task": data.get("task")})).get(("task", "name"))
    spec = TASKS.get(name) if isinstance(name, str) else None
    schemas[1:1] = [("task", spec.settings)] if spec else []
    schemas += [("decode", DecodeSettings)] if "decode" in data else []
    leaves = _leaves(data)
    given = {path[:depth] for path in leaves for depth in range(1, len(path) + 1)}
    if "ladder" in data or any(("train", key) in given for key in BUDGET_KEYS):
        given.add(("train", "steps_per_epoch"))
    named = _named_tables(data)
    for path, value in leaves.items():
        hole = _HOLE.fullmatch(value) if isinstance(value, str) else None
        if hole and hole[1] in filled:
            named |= {path: None, **({path[:-1]: None} if path[-1] == "name" else {})}
    for name, schema in schemas:
        yield from _schema_defaults((name,), schema, given, named)


def _named_tables(data: Mapping[str, Any]) -> dict[KeyPath, type[StrictModel] | None]:
    """Return, by path, the settings classes that `name` selects for the optimizer and the schedule."""
    names = {path[0]: name for path, name in iter_leaves((), data.get("train")) if path[1:] == ("name",)}
    optimizer, schedule = (names.get(table) for table in ("optimizer", "schedule"))
    rule = OPTIMIZERS.get(optimizer) if isinstance(optimizer, str) else None
    rate = SCHEDULES.get(schedule) if isinstance(schedule, str) else None
    return {
        ("train", "optimizer"): rule.settings if rule else OwnOptimizerSettings,
        ("train", "schedule"): rate.settings if rate else OwnScheduleSettings,
    }


def _schema_defaults(
    path: KeyPath,
    schema: type[StrictModel],
    given: Collection[KeyPath],
    named: Mapping[KeyPath, type[StrictModel] | None],
) -> Iterator[tuple[KeyPath, object]]:
    for name, field in schema.model_fields.items():
        place = (*path, name)
        if place == ("train", "start"):
            continue
        kinds = () if get_origin(field.annotation) is tuple else tables_in(field.annotation)
        inner = named.get(place, next((each for each in kinds if issubclass(each, StrictModel)), None))
        if inner is not None and (field.default is not None or place in given):
            yield from _schema_defaults(place, inner, given, named)
        elif place not in given and not field.is_required() and name not in BUDGET_KEYS:
            yield place, field.default
