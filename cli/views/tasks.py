"""Tasks as they are shown: a line each, or all that is known of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

from ...plugins import OWN
from ...studies.catalog.tasks import TASKS, AlgorithmicTask, TaskSpec
from ...studies.text.key_words import default_words, type_words
from ...studies.text.units import WIDTH


def format_tasks(specs: Sequence[TaskSpec]) -> list[str]:
    """Return each task's name with its input and output, and the owner of plug-ins' ones."""
    names = max(len(spec.name) for spec in specs)
    indent = " " * (names + 3)
    texts = (f"{spec.name:<{names}}   {spec.summary}{_owner(spec)}" for spec in specs)
    return [line for text in texts for line in wrap(text, WIDTH, subsequent_indent=indent)]


def task_to_dict(spec: TaskSpec) -> dict[str, Any]:
    """Return all facts about a task, as plain data."""
    known = {
        "name": spec.name,
        "summary": spec.summary,
        "needs": spec.kind.value,
        "keys": list(spec.keys),
        "source": spec.source,
        "owner": TASKS.owner(spec.name),
    }
    if isinstance(spec, AlgorithmicTask):
        known |= {"symbols": spec.vocab, "first_length": spec.start, "growth": spec.length_step}
        if spec.example:
            known["example"] = dict(zip(("input", "target", "meaning"), spec.example, strict=True))
    return known


def format_task(spec: TaskSpec, drawn: tuple[str, str] | None) -> Iterator[str]:
    """Yield all facts about a task, in lines; with an example's input and target for one that draws them."""
    rows = [("needs", spec.kind.value), ("source", spec.source)]
    if (owner := TASKS.owner(spec.name)) != OWN:
        file = TASKS.source(spec.name)
        rows.append(("plug-in", f"{owner}, sha256 {file.digest[:16]}" if file else owner))
    if isinstance(spec, AlgorithmicTask):
        rows[1:1] = [
            ("symbols", f"{spec.vocab:,}"),
            ("lengths", f"from {spec.start}, growing by {spec.length_step}: [train] curriculum"),
            *((("example", "{} to {}: {}".format(*spec.example)),) if spec.example else ()),
        ]
    yield from wrap(f"{spec.name}: {spec.summary}", WIDTH)
    yield ""
    for name, value in rows:
        yield from wrap(f"  {name:<8} {value}", WIDTH, subsequent_indent=" " * 11)
    for name, text in zip(("input", "target"), drawn or (), strict=False):
        first, *others = text.split("\n")
        yield from wrap(f"  {name:<8} {first}", WIDTH, subsequent_indent=" " * 11)
        yield from (f"{'':11}{line}".rstrip() for line in others)
    if spec.keys:
        yield "  [task]"
    for key, meaning in spec.keys.items():
        field = spec.settings.model_fields[key]
        default = default_words(field)
        given = default if default == "required" else f"default {default}"
        yield from wrap(f"    {key} ({type_words(field)}; {given})", WIDTH, subsequent_indent=" " * 6)
        yield from wrap(meaning, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)


def _owner(spec: TaskSpec) -> str:
    owner = TASKS.owner(spec.name)
    return "" if owner == OWN else f" · {owner}"
