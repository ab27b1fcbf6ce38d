"""Lists of the names that recipes and studies can use, and the facts about one name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from ...errors import ActivememError, nearest_hint
from ...grammar import Spec, lookup, registered_names
from ...grammar.norms import NORMS
from ...grammar.positions import POSITIONS
from ...plugins import OWN, Registry, broken_plugins
from ...studies.catalog.datasets import dataset_names
from ...studies.catalog.metrics import METRICS, better_arrow
from ...studies.catalog.optimisers import OPTIMIZERS, SCHEDULES
from ...studies.catalog.samplers import SAMPLERS, SCHEDULERS
from ...studies.catalog.tasks import TASKS, AlgorithmicTask, GeneratedTask, TaskSpec, require_task, task_names
from ...studies.catalog.tasks.synthetic import SyntheticSpec
from ...studies.catalog.train_parts import CALLBACKS, LOSS_TERMS
from ...studies.presentation.kinds import Role, find_kind, kinds_of
from ...studies.schema.epoch_metrics import task_metrics
from ...studies.schema.search_settings import SAMPLER_KEYS, SCHEDULER_KEYS
from ...studies.schema.settings import DESIGNS, find_design
from ...studies.text.strict_model import default_words, key_descriptions, type_words
from ...studies.text.units import WIDTH
from . import blocks
from .study_keys import key_names

if TYPE_CHECKING:
    from ..pages import MetricEntry, NameEntry, NameListPage, TaskEntry

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

_LABEL_WIDTH = 11
"""The width of the labels before the facts about a name."""

_SEARCH_KEYS = {"samplers": SAMPLER_KEYS, "schedulers": SCHEDULER_KEYS}


def _names(kind: str) -> Iterable[str]:
    if kind in STUDY_KEYS:
        return _titles(kind)
    listed = {"blocks": registered_names, "tasks": task_names, "metrics": lambda: METRICS}
    return listed[kind]() if kind in listed else REGISTRIES[kind][1]


def _titles(kind: str) -> dict[str, str]:
    """Map each design, or each kind of table or figure, to a short description of it."""
    if kind == "designs":
        return {name: find_design(name).title for name in DESIGNS}
    return {  # the first line of the docstring is `[[table]] kind = "points"`: then what the table shows
        name: (model.__doc__ or "").partition("\n")[0].partition(": ")[2].removesuffix(".")
        for name, model in kinds_of(_ROLES[kind]).items()
    }


def _source(kind: str, name: str) -> str:
    return find_design(name).source if kind == "designs" else ""


def exact_kinds(name: str, kinds: Sequence[str]) -> list[str]:
    """Return those of the kinds (blocks, tasks, metrics …) in which an entry has exactly this name."""
    return [kind for kind in kinds if name in set(_names(kind))]


def kinds_with(name: str, kinds: Sequence[str]) -> list[str]:
    """Return the kinds (blocks, tasks, metrics …) that have an entry of this name.

    Raise ActivememError with the nearest name if none does. A text that is not a name, such as `conv(k=20)`,
    is a block.
    """
    names = {kind: set(_names(kind)) for kind in kinds}
    found = exact_kinds(name, kinds)
    if found or ("blocks" in kinds and not re.fullmatch(r"[\w-]+", name)):
        return found or ["blocks"]
    if name in dataset_names():
        raise ActivememError(f"{name} is a corpus; see activemem data list")
    kind = "name" if len(kinds) > 1 else _singular(kinds[0])
    keys = key_names() if len(kinds) > 1 else set[str]()
    raise ActivememError(f"unknown {kind} '{name}'{nearest_hint(name, keys.union(*names.values()))}")


def _singular(kind: str) -> str:
    return kind[:-1].replace("_", " ")


def kind_page(kind: str) -> NameListPage:
    """Return all entries of a kind (blocks, tasks, metrics …) with their facts, for JSON output.

    The page of blocks also has the plug-ins that cannot be used.
    """
    from ..pages import NameListPage

    if kind == "blocks":
        problems = [
            {"owner": each.owner, "name": each.entry, "message": each.message} for each in broken_plugins()
        ]
        return NameListPage(
            kind=kind, names=[blocks.block_entry(spec) for spec in _block_specs()], problems=problems
        )
    return NameListPage(kind=kind, names=[name_page(kind, name) for name in _names(kind)], problems=())


def name_page(kind: str, name: str) -> TaskEntry | MetricEntry | NameEntry:
    """Return the facts about a name that is not a block."""
    from ..pages import MetricEntry, NameEntry, TaskEntry

    if kind == "tasks":
        task = require_task(name)
        page = TaskEntry(
            name=name,
            summary=task.summary,
            needs=task.kind.value,
            keys=list(task.keys),
            source=task.source,
            owner=TASKS.owner(name),
            metrics=task_metrics(task),
        )
        if not isinstance(task, AlgorithmicTask):
            return page
        example = (
            dict(zip(("input", "target", "meaning"), task.example, strict=True)) if task.example else None
        )
        drawn = {"symbols": task.vocab, "first_length": task.start, "growth": task.length_step}
        return page.model_copy(update={**drawn, "example": example})
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
        title, source = _titles(kind)[name], _source(kind, name)
        return NameEntry(kind=kind, key=STUDY_KEYS[kind], name=name, title=title, source=source, owner=OWN)
    key, registry = REGISTRIES[kind]
    return NameEntry(
        kind=kind,
        key=key,
        name=name,
        title=getattr(registry[name], "title", None),
        source=registry[name].source,
        owner=registry.owner(name),
    )


def format_kind(kind: str) -> list[str]:
    """Return one line for each entry of a kind in the catalogue (blocks, tasks, metrics, …).

    If a name is from a plug-in, its line names the plug-in.
    """
    if kind == "blocks":
        return [blocks.format_blocks(_block_specs())]
    if kind == "tasks":
        return _rows([(name, require_task(name).summary, TASKS.owner(name)) for name in task_names()])
    if kind == "metrics":
        return _rows(
            [(name + better_arrow(each), each.title, METRICS.owner(name)) for name, each in METRICS.items()]
        )
    if kind in STUDY_KEYS:
        rows = [
            (f"  {name}", f"{title} ({source})" if (source := _source(kind, name)) else title, OWN)
            for name, title in _titles(kind).items()
        ]
        return [STUDY_KEYS[kind], *_rows(rows)]
    key, registry = REGISTRIES[kind]
    rows = [(f"  {name}", _description(item), registry.owner(name)) for name, item in registry.items()]
    return [key, *_rows(rows)] if rows else ["no plug-in has registered any"]


def format_name(kind: str, name: str) -> Iterator[str]:
    """Yield lines with the facts about a name that is not a block."""
    if kind == "tasks":
        return _format_task(require_task(name))
    if kind == "metrics":
        metric = METRICS[name]
        better = {True: "higher", False: "lower", None: "neither"}[metric.higher_is_better]
        rows = [("kind", "metric"), ("better", better), ("indices", ", ".join(metric.index_titles))]
        return _format(f"{name}: {metric.title}", [*rows, *_origin(METRICS, name)])
    if kind == "designs":
        design = find_design(name)
        rows = [("kind", "design"), ("source", design.source)]
        heading = f"{name}: {design.title}"
        return _format(heading, [row for row in rows if row[1]], STUDY_KEYS[kind], design.settings_class)
    if kind in _ROLES:
        return _format(
            f"{name}: {_titles(kind)[name]}",
            [("kind", _singular(kind))],
            f"[[{_ROLES[kind]}]]",
            find_kind(_ROLES[kind], name),
        )
    key, registry = REGISTRIES[kind]
    item = registry[name]
    rows = [("kind", _singular(kind)), ("source", item.source), *_origin(registry, name)]
    settings = getattr(item, "settings", _SEARCH_KEYS.get(kind, {}).get(name))
    return _format(f"{name}: {item.title}" if hasattr(item, "title") else name, rows, key, settings)


def _block_specs() -> list[Spec]:
    return [spec for name in registered_names() if (spec := lookup(name)) is not None]


def _rows(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    names = max(len(name) for name, _, _ in rows)
    texts = (
        f"{name:<{names}}   {text}{'' if owner == OWN else f' · {owner}'}".rstrip()
        for name, text, owner in rows
    )
    return [line for text in texts for line in wrap(text, WIDTH, subsequent_indent=" " * (names + 3))]


def _description(item: Any) -> str:  # noqa: ANN401 -- of any registry
    return f"{item.title} ({item.source})" if hasattr(item, "title") else item.source


def _format_task(spec: TaskSpec) -> Iterator[str]:
    rows = [("needs", spec.kind.value), ("source", spec.source), *_origin(TASKS, spec.name)]
    if isinstance(spec, AlgorithmicTask):
        rows[1:1] = [
            ("symbols", f"{spec.vocab:,}"),
            ("lengths", f"from {spec.start}, growing by {spec.length_step}: [train] curriculum"),
            *((("example", "{} to {}: {}".format(*spec.example)),) if spec.example else ()),
        ]
    if issubclass(spec.settings, GeneratedTask):
        from ... import show_example

        rows += [("symbols", spec.symbols)] if isinstance(spec, SyntheticSpec) else []
        rows += _example_rows(*show_example(spec.settings(name=spec.name)))
    rows += [("metrics", text) if not index else ("", text) for index, text in enumerate(_metrics(spec))]
    return _format(f"{spec.name}: {spec.summary}", rows, "[task]", spec.settings)


def _example_rows(inputs: Sequence[str], targets: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield lines that show the inputs and the targets of an example.

    If there is a target for each input token, it is shown below this token.
    """
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


def _metrics(spec: TaskSpec) -> Iterator[str]:
    by_way: dict[str, list[str]] = {}
    for name, way in task_metrics(spec).items():
        by_way.setdefault(way, []).append(name)
    for way, names in by_way.items():
        yield f"{f'with {way}: ' if way else ''}{', '.join(names)}"


def _origin(registry: Registry[Any], name: str) -> list[tuple[str, str]]:
    if (owner := registry.owner(name)) == OWN:
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
        default = default_words(field)
        given = default if default == "required" else f"default {default}"
        yield from wrap(f"    {key} ({type_words(field)}; {given})", WIDTH, subsequent_indent=" " * 6)
        yield from wrap(described.get(key, ""), WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
