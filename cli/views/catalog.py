"""The names that recipes and studies can use: lists of one kind, and the facts about one name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import Any

from pydantic import BaseModel

from ...errors import ActivememError, nearest_hint
from ...grammar import (
    CostContext,
    Fault,
    RecipeError,
    configure,
    lookup,
    nodes,
    parse,
    registered_names,
    render,
)
from ...grammar.analysis.analyse import block_cost
from ...grammar.norms import NORMS
from ...grammar.positions import POSITIONS
from ...grammar.signature import default_text, describe_values, example, signature
from ...grammar.vocabulary.spec import SPECS, block_with_word, spec_of
from ...plugins import OWN, Registry
from ...reporting.recipes.breakdown import STATE_BYTES
from ...studies.catalog.datasets import dataset_names
from ...studies.catalog.metrics import BETTER_ARROWS, METRICS, METRICS_AND_COSTS
from ...studies.catalog.optimisers import OPTIMIZERS, SCHEDULES
from ...studies.catalog.samplers import SAMPLERS, SCHEDULERS
from ...studies.catalog.tasks import TASKS, AlgorithmicTask, GeneratedTask, require_task, task_names
from ...studies.catalog.train_parts import CALLBACKS, LOSS_TERMS
from ...studies.presentation.kinds import Role
from ...studies.presentation.reader import KINDS
from ...studies.schema.reported_metrics import task_metrics
from ...studies.schema.search_settings import scheduler_keys
from ...studies.schema.settings import DESIGNS, find_design
from ...studies.text.strict_model import default_words, key_descriptions, type_words
from ...studies.text.units import WIDTH, format_bytes, plural, reach_as_json, si_prefix
from .study_keys import KeyEntry, key_lines, key_names, unknown_key


@dataclass(frozen=True, slots=True, kw_only=True)
class NameEntry:
    """A name that recipes or study files can use, such as a block, a task, a metric or a sampler.

    `key` is the study-file key that takes the name. A list has no more. `facts` are texts by label, such as
    the equation of a block or the metrics of a task, and `keys` are the keys that come with the name. A block
    also has `parameters`, and an `example` with its unrounded costs in a small model.
    """

    kind: str
    name: str
    title: str
    source: str
    owner: str
    key: str = ""
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    keys: Sequence[KeyEntry] = ()
    parameters: Sequence[Mapping[str, Any]] = ()
    example: Mapping[str, Any] | None = None


REGISTRIES: Mapping[str, tuple[str, Registry[Any]]] = {
    "blocks": ("[model] recipe", SPECS),
    "norms": ("[model] norm_kind", NORMS),
    "positions": ("[model] position", POSITIONS),
    "tasks": ("[task] name", TASKS),
    "metrics": ("[[table]] value", METRICS),
    "optimizers": ("[train] optimizer", OPTIMIZERS),
    "schedules": ("[train] schedule", SCHEDULES),
    "loss_terms": ("[[train.loss_terms]]", LOSS_TERMS),
    "callbacks": ("[[train.callbacks]]", CALLBACKS),
    "samplers": ("[search] sampler", SAMPLERS),
    "schedulers": ("[search] scheduler", SCHEDULERS),
}
"""For each kind, the study key that takes such a name, and all names."""

STUDY_KEYS = {"designs": "[study] design", "tables": "[[table]] kind", "curves": "[[curve]] kind"}
"""For each kind without a registry, the study key that takes such a name."""

_ROLES: Mapping[str, Role] = {"tables": "table", "curves": "curve"}

_MAX_DESCRIBED = 10
"""The number of names whose descriptions have the words that are shown."""

_LABEL_WIDTH = 11
"""The width of the labels before the facts about a name."""


def _registry(kind: str) -> Registry[Any]:
    if kind == "designs":
        return DESIGNS
    return KINDS[_ROLES[kind]] if kind in _ROLES else REGISTRIES[kind][1]


def _names(kind: str) -> Iterable[str]:
    if kind in STUDY_KEYS:
        return _titles(kind)
    listed = {"blocks": registered_names, "tasks": task_names}
    return listed[kind]() if kind in listed else REGISTRIES[kind][1]


def _titles(kind: str) -> dict[str, str]:
    """Return a short description of each design, kind of table, or kind of figure."""
    if kind == "designs":
        return {name: find_design(name).title for name in DESIGNS}
    return {  # the first line of a docstring, which may begin with `[[table]] kind = "points"`:
        name: re.sub(r"^`\[\[.*?: ", "", (model.__doc__ or "").partition("\n")[0]).removesuffix(".")
        for name, model in KINDS[_ROLES[kind]].items()
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
    if described := _described_by(name):
        more = f" and {len(described) - _MAX_DESCRIBED} more" if len(described) > _MAX_DESCRIBED else ""
        names_found = ", ".join(described[:_MAX_DESCRIBED]) + more
        raise ActivememError(f"unknown name '{name}'; its words are in the descriptions of: {names_found}")
    if message := unknown_key(name):
        raise ActivememError(message)
    if not re.fullmatch(r"[\w-]+", name):
        return ["blocks"]
    if name in dataset_names():
        raise ActivememError(f"{name} is a corpus; see activemem data list")
    if name in METRICS_AND_COSTS:
        raise ActivememError(f"{name} is a cost, not a metric: {METRICS_AND_COSTS[name].title}")
    if example := block_with_word(name):
        block = example.partition("(")[0]
        raise ActivememError(f"{name} is the value of an argument, as in {example}: activemem show {block}")
    raise ActivememError(f"unknown name '{name}'{nearest_hint(name, key_names().union(*names.values()))}")


def _described_by(text: str) -> list[str]:
    """Return the names whose descriptions have all of several words, such as `delta` for "gated delta"."""
    words = {word for word in text.lower().split() if len(word) > 2 and word != "the"}
    is_key = "_".join(text.lower().split()) in key_names()
    if len(words) < 2 or is_key or not re.fullmatch(r"[\w ]+", text):
        return []
    found: list[str] = []
    for kind in ("blocks", "tasks", "metrics"):
        for name in _names(kind):
            described = _entry(kind, name).title
            if kind == "blocks":
                described += " ".join(f" {each.meaning}" for each in spec_of(name).parameters)
            found += [name] if words <= set(re.findall(r"\w+", described.lower())) else []
    return found


def _singular(kind: str) -> str:
    return kind[:-1].replace("_", " ")


def list_names(kind: str) -> list[NameEntry]:
    """Return all names of a kind, without the facts about each."""
    return [_entry(kind, name) for name in _names(kind)]


def _entry(kind: str, name: str) -> NameEntry:
    registry = _registry(kind)
    owner = registry.owner(name) if name in registry else OWN  # of a kind of table of the package, none
    if kind in STUDY_KEYS:
        title, source = _titles(kind)[name], find_design(name).source if kind == "designs" else ""
        return NameEntry(kind=kind, key=STUDY_KEYS[kind], name=name, title=title, source=source, owner=owner)
    key = REGISTRIES[kind][0]
    found = {"blocks": lookup, "tasks": require_task}.get(kind, registry.__getitem__)(name)
    title = getattr(found, "summary", None) or getattr(found, "title", None) or ""
    source = getattr(found, "source", "")
    return NameEntry(kind=kind, key=key, name=name, title=title, source=source, owner=owner)


def describe_name(kind: str, name: str) -> NameEntry:
    """Return the facts about a name of a kind (blocks, tasks, metrics …). A block may have arguments."""
    if kind == "blocks":
        return _block_entry(_parse_block(name))
    entry, settings, table = _entry(kind, name), None, STUDY_KEYS.get(kind, "")
    if kind == "tasks":
        settings, table = require_task(name).settings, "[task]"
        entry = replace(entry, facts=dict(_task_facts(name)))
    elif kind == "metrics":
        metric = METRICS[name]
        better = {True: "higher", False: "lower", None: "neither"}[metric.higher_is_better]
        entry = replace(entry, facts={"better": better, "indices": ", ".join(metric.index_titles)})
    elif kind == "designs":
        settings = find_design(name).settings_class
    elif kind in _ROLES:
        settings, table = KINDS[_ROLES[kind]][name], f"[[{_ROLES[kind]}]]"
    else:
        table, registry = REGISTRIES[kind]
        settings = scheduler_keys(name) if kind == "schedulers" else getattr(registry[name], "settings", None)
    return replace(entry, keys=_keys_of(table, name, settings))


def _keys_of(table: str, name: str, settings: type[BaseModel] | None) -> list[KeyEntry]:
    described = {} if settings is None else key_descriptions(settings)
    return [
        KeyEntry(
            table=table,
            key=key,
            type=type_words(each),
            default=default_words(each),
            description=" ".join(described.get(key, "").split()),
            of=[name],
        )
        for key, each in (settings.model_fields.items() if settings else ())
        if key != "name"
    ]


def _parse_block(text: str) -> nodes.BlockNode:
    """Return the block that a text names, such as `conv` or `conv(k=3)`.

    Without arguments, required parameters get small values. Raise RecipeError, with the nearest name, for an
    unknown block.
    """
    spec = lookup(text)
    if spec is not None:
        return example(spec)
    recipe = parse(text)
    if not isinstance(recipe.root, nodes.BlockNode):
        raise RecipeError(text, [Fault(0, len(text), f"expected one block, got {recipe.text}")])
    if recipe.holes or recipe.dimensions:
        raise RecipeError(text, [Fault(0, len(text), "expected a block without choices and ranges")])
    return recipe.root


def _block_entry(block: nodes.BlockNode) -> NameEntry:
    """Return the facts about a block, with its costs in a small bidirectional model.

    A reach without limit is "all".
    """
    spec, context = spec_of(block.name), CostContext(config=configure(d_model=128, dropout=0.0), length=40)
    cost = block_cost(block, context.config, length=context.length)
    shared = "".join(f", and {count:,} in the {key}" for key, count in cost.shared.items())
    reach = reach_as_json(spec.reach(spec.settings(block), context))
    left, right = reach.values()
    unit, size = si_prefix(cost.flops / context.length)
    cache, fixed = (format_bytes(count * STATE_BYTES) for count in (cost.state, cost.window))
    facts = {
        "written": signature(spec),
        "role": spec.role.value,
        "equation": spec.equation,
        **{
            f"{each.name}=": f"{each.meaning}: {describe_values(each)}; "
            + ("required" if default_text(each) is None else f"default {default_text(each)}")
            for each in spec.parameters
        },
        "costs": f"of {render(block)} at width {context.width}, {plural(context.length, 'token')}, in a "
        f"bidirectional model: {cost.parameters:,} parameters{shared}; "
        f"{cost.flops / context.length / size:,.1f} {unit}FLOPs for each token",
        "reach": str(left) if left == right and left in ("all", 0) else f"{left} ← · → {right}",
        "stream": f"keeps {cache} of each past token"
        + (f", and {fixed} in a stream of any length" if cost.window else ""),
    }
    return replace(
        _entry("blocks", block.name),
        facts=facts,
        parameters=[
            {
                **{name: getattr(each, name) for name in ("name", "kind", "low", "high", "words", "meaning")},
                "default": default_text(each),
            }
            for each in spec.parameters
        ],
        example={
            "recipe": render(block),
            "d_model": context.width,
            "length": context.length,
            "causal": context.causal,
            "parameters": cost.parameters,
            "shared": cost.shared,
            "flops": cost.flops,
            "flops_per_token": cost.flops / context.length,
            "state_per_token": cost.state,
            "window": cost.window,
            "reach": reach,
        },
    )


def _task_facts(name: str) -> Iterator[tuple[str, str]]:
    spec = require_task(name)
    yield "needs", spec.kind.value
    if isinstance(spec, AlgorithmicTask):
        yield "symbols", f"{spec.vocab:,}"
        yield "lengths", f"from {spec.start}, growing by {spec.length_step}: [train] curriculum"
        if spec.example:
            yield "example", "{} to {}: {}".format(*spec.example)
    if issubclass(spec.settings, GeneratedTask):
        from ... import show_example

        yield "symbols", spec.meaning or ""
        yield "example", "\n".join(_example_lines(*show_example(spec.settings(name=spec.name))))
    by_way: dict[str, list[str]] = {}
    for metric, way in task_metrics(spec).items():
        by_way.setdefault(way, []).append(metric)
    yield "metrics", "\n".join(f"{way and f'with {way}: '}{', '.join(of)}" for way, of in by_way.items())


def _example_lines(inputs: Sequence[str], targets: Sequence[str]) -> Iterator[str]:
    """Yield lines with the inputs and targets of an example, each target below its token if possible."""
    if len(inputs) != len(targets):
        yield from (" ".join(inputs), f"to {' '.join(targets)}")
        return
    above, below = "", ""
    for one, other in zip(inputs, targets, strict=True):
        width = max(len(one), len(other))
        if len(above) + 1 + width > WIDTH - _LABEL_WIDTH:
            yield from (above, below)
            above, below = "", ""
        gap = " " if above else ""
        above, below = f"{above}{gap}{one:>{width}}", f"{below}{gap}{other:>{width}}"
    yield from (above, below)
    if "·" in targets:
        yield "each target is below its token; · marks a token without a target"


def format_kind(entries: Sequence[NameEntry]) -> list[str]:
    """Return one line for each name of a kind (blocks, tasks, …), with the plug-in that it is from."""
    if not entries:
        return ["no plug-in has registered any"]
    names = [
        each.name + (BETTER_ARROWS[METRICS[each.name].higher_is_better] if each.kind == "metrics" else "")
        for each in entries
    ]
    width = max(map(len, names))
    lines = [entries[0].key]
    for name, entry in zip(names, entries, strict=True):
        source = "" if entry.kind in ("blocks", "tasks") else entry.source
        text = f"{entry.title} ({source})" if entry.title and source else entry.title or source
        line = f"  {name:<{width}}   {text}{'' if entry.owner == OWN else f' · {entry.owner}'}".rstrip()
        lines += wrap(line, WIDTH, subsequent_indent=" " * (width + 5), break_on_hyphens=False)
    return lines


def format_name(entry: NameEntry) -> Iterator[str]:
    """Yield lines with the facts about a name."""
    yield from wrap(f"{entry.name}: {entry.title}" if entry.title else entry.name, WIDTH)
    yield ""
    rows = {"kind": _singular(entry.kind), **entry.facts, "source": entry.source}
    if entry.owner != OWN:
        file = _registry(entry.kind).source(entry.name)
        rows["plug-in"] = f"{entry.owner}, sha256 {file.digest[:16]}" if file else entry.owner
    width = max(_LABEL_WIDTH - 3, *map(len, rows))
    for label, text in rows.items():
        for number, line in enumerate(text.split("\n") if text else ()):
            head = f"  {'' if number else label:<{width}} "
            if entry.facts.get("example") == text:  # its columns stay below each other
                yield f"{head}{line}".rstrip()
            else:
                yield from wrap(
                    f"{head}{line}", WIDTH, subsequent_indent=" " * (width + 3), break_on_hyphens=False
                )
    if entry.keys:
        yield f"  {entry.keys[0].table}"
    for each in entry.keys:
        yield from key_lines(replace(each, of=()), each.key, indent=4)
