"""Lists of the names that recipes and studies can use, and the facts about one name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Literal

from pydantic import BaseModel

from ...errors import ActivememError, nearest_hint
from ...grammar import lookup, registered_names
from ...grammar.norms import NORMS
from ...grammar.positions import POSITIONS
from ...plugins import OWN, Registry, broken_plugins
from ...studies.catalog.datasets import dataset_names
from ...studies.catalog.metrics import BETTER_ARROWS, METRICS, METRICS_AND_COSTS
from ...studies.catalog.optimisers import OPTIMIZERS, SCHEDULES
from ...studies.catalog.samplers import SAMPLERS, SCHEDULERS
from ...studies.catalog.tasks import TASKS, AlgorithmicTask, GeneratedTask, require_task, task_names
from ...studies.catalog.train_parts import CALLBACKS, LOSS_TERMS
from ...studies.presentation.kinds import PLUGIN_KINDS, Role, find_kind, kinds_of
from ...studies.schema.reported_metrics import task_metrics
from ...studies.schema.search_settings import scheduler_keys
from ...studies.schema.settings import DESIGNS, find_design
from ...studies.text.strict_model import default_words, key_descriptions, type_words
from ...studies.text.units import WIDTH
from . import blocks
from .study_keys import KeyEntry, first_keys, format_first_keys, key_names, type_and_default, unknown_key


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """A task, with its metrics and the study-file keys that it takes.

    Only some tasks have symbols, lengths and an example; these fields are null for others.

    `metrics` maps each metric to the key that adds it; "" if every trial has it.
    """

    kind: Literal["tasks"] = "tasks"
    name: str
    summary: str
    needs: str
    keys: Sequence[str]
    source: str
    owner: str
    metrics: Mapping[str, str]
    symbols: int | None = None
    first_length: int | None = None
    growth: int | None = None
    example: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricEntry:
    """A metric. `higher_is_better` is null if neither direction is better."""

    kind: Literal["metrics"] = "metrics"
    name: str
    title: str
    higher_is_better: bool | None
    decimals: int
    indices: Sequence[str]
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NameEntry:
    """A name that study files can use, such as a sampler. `key` is the study-file key that takes the name."""

    kind: str
    key: str
    name: str
    title: str | None
    source: str
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NameListPage:
    """The output of `list`: the names of one kind. `problems` are plug-ins that cannot be used.

    Keys of study files are only those of a first study.
    """

    kind: str
    names: Sequence[blocks.BlockEntry | TaskEntry | MetricEntry | NameEntry | KeyEntry]
    problems: Sequence[Mapping[str, str]]


REGISTRIES: Mapping[str, tuple[str, Registry[Any]]] = {
    "norms": ("[model] norm_kind", NORMS),
    "positions": ("[model] position", POSITIONS),
    "optimizers": ("[train] optimizer", OPTIMIZERS),
    "schedules": ("[train] schedule", SCHEDULES),
    "loss_terms": ("[[train.loss_terms]]", LOSS_TERMS),
    "callbacks": ("[[train.callbacks]]", CALLBACKS),
    "samplers": ("[search] sampler", SAMPLERS),
    "schedulers": ("[search] scheduler", SCHEDULERS),
}
"""For each kind, the study key that takes such a name, and all names. Other kinds have more facts."""

STUDY_KEYS = {"designs": "[study] design", "tables": "[[table]] kind", "curves": "[[curve]] kind"}
"""For each kind without a registry, the study key that takes such a name."""

_ROLES: Mapping[str, Role] = {"tables": "table", "curves": "curve"}

_MAX_DESCRIBED = 10
"""The number of names whose descriptions have the words that are shown."""

_LABEL_WIDTH = 11
"""The width of the labels before the facts about a name."""


def _names(kind: str) -> Iterable[str]:
    if kind in STUDY_KEYS:
        return _titles(kind)
    listed = {"blocks": registered_names, "tasks": task_names, "metrics": lambda: METRICS}
    return listed[kind]() if kind in listed else REGISTRIES[kind][1]


def _titles(kind: str) -> dict[str, str]:
    """Return a short description of each design, kind of table, or kind of figure."""
    if kind == "designs":
        return {name: find_design(name).title for name in DESIGNS}
    return {  # the first line of a docstring, which may begin with `[[table]] kind = "points"`:
        name: re.sub(r"^`\[\[.*?: ", "", (model.__doc__ or "").partition("\n")[0]).removesuffix(".")
        for name, model in kinds_of(_ROLES[kind]).items()
    }


def kinds_with(name: str, kinds: Sequence[str], *, is_key: bool) -> list[str]:
    """Return the kinds (blocks, tasks, metrics …) that have this name.

    If none has the name, and no key of study files (`is_key`), raise ActivememError with the nearest name. A
    text that is not a name, such as `conv(k=20)`, is a block.
    """
    names = {kind: set(_names(kind)) for kind in kinds}
    found = [kind for kind in kinds if name in names[kind]]
    if found or is_key:
        return found
    if described := _described_by(name, kinds):
        more = f" and {len(described) - _MAX_DESCRIBED} more" if len(described) > _MAX_DESCRIBED else ""
        names_found = ", ".join(described[:_MAX_DESCRIBED]) + more
        raise ActivememError(f"unknown name '{name}'; its words are in the descriptions of: {names_found}")
    if len(kinds) > 1 and (message := unknown_key(name)):
        raise ActivememError(message)
    if "blocks" in kinds and not re.fullmatch(r"[\w-]+", name):
        return ["blocks"]
    if name in dataset_names():
        raise ActivememError(f"{name} is a corpus; see activemem data list")
    if name in METRICS_AND_COSTS:
        raise ActivememError(f"{name} is a cost, not a metric: {METRICS_AND_COSTS[name].title}")
    kind = "name" if len(kinds) > 1 else _singular(kinds[0])
    keys = key_names() if len(kinds) > 1 else set[str]()
    raise ActivememError(f"unknown {kind} '{name}'{nearest_hint(name, keys.union(*names.values()))}")


def _described_by(text: str, kinds: Sequence[str]) -> list[str]:
    """Return the names whose descriptions have all of several words, such as `delta` for "gated delta"."""
    words = {word for word in text.lower().split() if len(word) > 2 and word != "the"}
    is_key = "_".join(text.lower().split()) in key_names()
    if len(words) < 2 or is_key or not re.fullmatch(r"[\w ]+", text):
        return []
    texts: list[tuple[str, str]] = []
    for kind in kinds:
        if kind == "blocks":
            specs = [spec for name in registered_names() if (spec := lookup(name)) is not None]
            texts += [
                (each.name, " ".join([each.summary, *(one.meaning for one in each.parameters)]))
                for each in specs
            ]
        elif kind == "tasks":
            texts += [(name, require_task(name).summary) for name in task_names()]
        elif kind == "metrics":
            texts += [(name, METRICS[name].title) for name in METRICS]
    return [name for name, described in texts if words <= set(re.findall(r"\w+", described.lower()))]


def _singular(kind: str) -> str:
    return kind[:-1].replace("_", " ")


def kind_page(kind: str) -> NameListPage:
    """Return all entries of a kind with their facts, and for blocks the plug-ins that cannot be used."""
    if kind == "keys":
        return NameListPage(kind=kind, names=first_keys(), problems=())
    if kind != "blocks":
        return NameListPage(kind=kind, names=[name_page(kind, name) for name in _names(kind)], problems=())
    specs = (spec for name in registered_names() if (spec := lookup(name)) is not None)
    problems = [
        {"owner": each.owner, "name": each.entry, "message": each.message} for each in broken_plugins()
    ]
    return NameListPage(kind=kind, names=[blocks.block_entry(spec) for spec in specs], problems=problems)


def name_page(kind: str, name: str) -> blocks.BlockPage | TaskEntry | MetricEntry | NameEntry:
    """Return the facts about a name of a kind (blocks, tasks, metrics …)."""
    if kind == "blocks":
        return blocks.block_page(name)
    if kind == "tasks":
        task = require_task(name)
        drawn: dict[str, Any] = {}
        if isinstance(task, AlgorithmicTask):
            drawn |= {"symbols": task.vocab, "first_length": task.start, "growth": task.length_step}
            if task.example:
                drawn["example"] = dict(zip(("input", "target", "meaning"), task.example, strict=True))
        return TaskEntry(
            name=name,
            summary=task.summary,
            needs=task.kind.value,
            keys=list(task.keys),
            source=task.source,
            owner=TASKS.owner(name),
            metrics=task_metrics(task),
            **drawn,
        )
    if kind == "metrics":
        metric = METRICS[name]
        return MetricEntry(
            name=name,
            title=metric.title,
            higher_is_better=metric.higher_is_better,
            decimals=metric.decimals,
            indices=metric.index_titles,
            owner=METRICS.owner(name),
        )
    if kind in STUDY_KEYS:
        title, source = _titles(kind)[name], find_design(name).source if kind == "designs" else ""
        registry = PLUGIN_KINDS[_ROLES[kind]] if kind in _ROLES else DESIGNS
        owner = registry.owner(name) if name in registry else OWN
        return NameEntry(kind=kind, key=STUDY_KEYS[kind], name=name, title=title, source=source, owner=owner)
    key, registry = REGISTRIES[kind]
    title, source = getattr(registry[name], "title", None), registry[name].source
    return NameEntry(kind=kind, key=key, name=name, title=title, source=source, owner=registry.owner(name))


def format_kind(page: NameListPage) -> list[str]:
    """Return one line for each entry of a kind (blocks, tasks, …), with the plug-in that it is from."""
    if page.kind == "keys":
        return list(format_first_keys(entry for entry in page.names if isinstance(entry, KeyEntry)))
    listed, heading, rows = list[blocks.BlockEntry](), list[str](), list[tuple[str, str, str]]()
    for entry in page.names:
        match entry:
            case TaskEntry():
                rows.append((entry.name, entry.summary, entry.owner))
            case MetricEntry():
                rows.append((entry.name + BETTER_ARROWS[entry.higher_is_better], entry.title, entry.owner))
            case NameEntry(title=title, source=source):
                heading = [entry.key]
                text = f"{title} ({source})" if title and source else title or source
                rows.append((f"  {entry.name}", text, entry.owner))
            case blocks.BlockEntry():
                listed.append(entry)
    if listed:
        return [blocks.format_blocks(listed)]
    if not rows:
        return ["no plug-in has registered any"]
    names = max(len(name) for name, _, _ in rows)
    texts = (
        f"{name:<{names}}   {text}{'' if owner == OWN else f' · {owner}'}".rstrip()
        for name, text, owner in rows
    )
    return [
        *heading,
        *(line for text in texts for line in wrap(text, WIDTH, subsequent_indent=" " * (names + 3))),
    ]


def format_name(entry: blocks.BlockPage | TaskEntry | MetricEntry | NameEntry) -> Iterator[str]:
    """Return lines with the facts about a name."""
    name, kind = entry.name, entry.kind
    if isinstance(entry, blocks.BlockPage):
        return iter([blocks.format_block(entry)])
    if isinstance(entry, TaskEntry):
        return _format_task(entry)
    if isinstance(entry, MetricEntry):
        better = {True: "higher", False: "lower", None: "neither"}[entry.higher_is_better]
        rows = [("kind", "metric"), ("better", better), ("indices", ", ".join(entry.indices))]
        return _format(f"{name}: {entry.title}", [*rows, *_origin(METRICS, name)])
    rows, table = [("kind", _singular(kind))], entry.key
    rows += [("source", entry.source)] if entry.source else []
    if kind == "designs":
        settings = find_design(name).settings_class
        rows += _origin(DESIGNS, name)
    elif kind in _ROLES:
        settings, table = find_kind(_ROLES[kind], name), f"[[{_ROLES[kind]}]]"
        rows += _origin(PLUGIN_KINDS[_ROLES[kind]], name)
    else:
        registry = REGISTRIES[kind][1]
        has_keys = getattr(registry[name], "settings", None)
        settings = scheduler_keys(name) if kind == "schedulers" else has_keys
        rows += _origin(registry, name)
    return _format(f"{name}: {entry.title}" if entry.title else name, rows, table, settings)


def _format_task(task: TaskEntry) -> Iterator[str]:
    spec, rows = require_task(task.name), [("needs", task.needs)]
    if task.symbols is not None:
        rows += [("symbols", f"{task.symbols:,}")]
        rows += [("lengths", f"from {task.first_length}, growing by {task.growth}: [train] curriculum")]
    if task.example:
        rows += [("example", "{input} to {target}: {meaning}".format(**task.example))]
    rows += [("source", task.source), *_origin(TASKS, task.name)]
    if issubclass(spec.settings, GeneratedTask):
        from ... import show_example

        rows += [("symbols", spec.meaning)] if spec.meaning else []
        rows += _example_rows(*show_example(spec.settings(name=spec.name)))
    by_way: dict[str, list[str]] = {}
    for name, way in task.metrics.items():
        by_way.setdefault(way, []).append(name)
    texts = [f"{way and f'with {way}: '}{', '.join(names)}" for way, names in by_way.items()]
    rows += zip(["metrics", *[""] * len(texts)], texts, strict=False)
    return _format(f"{task.name}: {task.summary}", rows, "[task]", spec.settings)


def _example_rows(inputs: Sequence[str], targets: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield lines with the inputs and targets of an example, each target below its token if possible."""
    if len(inputs) != len(targets):
        yield from (("input", " ".join(inputs)), ("target", " ".join(targets)))
        return
    above, below = "", ""
    for one, other in zip(inputs, targets, strict=True):
        width = max(len(one), len(other))
        if len(above) + 1 + width > WIDTH - _LABEL_WIDTH:
            yield from (("input", above), ("target", below))
            above, below = "", ""
        gap = " " if above else ""
        above, below = f"{above}{gap}{one:>{width}}", f"{below}{gap}{other:>{width}}"
    yield from (("input", above), ("target", below))
    if "·" in targets:
        yield "", "each target is below its token; · marks a token without a target"


def _origin(registry: Registry[Any], name: str) -> list[tuple[str, str]]:
    if name not in registry or (owner := registry.owner(name)) == OWN:
        return []
    file = registry.source(name)
    return [("plug-in", f"{owner}, sha256 {file.digest[:16]}" if file else owner)]


def _format(
    heading: str, rows: Iterable[tuple[str, str]], table: str = "", settings: type[BaseModel] | None = None
) -> Iterator[str]:
    yield from wrap(heading, WIDTH)
    yield ""
    for label, text in rows:
        first, *others = text.split("\n")
        if first:
            yield from wrap(f"  {label:<8} {first}", WIDTH, subsequent_indent=" " * _LABEL_WIDTH)
        yield from (f"{'':{_LABEL_WIDTH}}{line}".rstrip() for line in others)
    fields, described = ({}, {}) if settings is None else (settings.model_fields, key_descriptions(settings))
    keys = {key: field for key, field in fields.items() if key != "name"}
    if keys:
        yield f"  {table}"
    for key, field in keys.items():
        given = type_and_default(type_words(field), default_words(field))
        yield from wrap(f"    {key} ({given})", WIDTH, subsequent_indent=" " * 6)
        yield from wrap(described.get(key, ""), WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
