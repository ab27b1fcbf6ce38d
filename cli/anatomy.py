"""A recipe taken apart: a line for each part with what it costs and reaches, or the same as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any

from ..grammar import Analysis, Form, Memory, Part, Recipe
from .figures import WIDTH, crop, in_bytes, prefix, reach, reach_data
from .sizes import Sizes

STATE_BYTES = 2
"""Generation keeps 16-bit numbers, as models do."""

_SHORTEST_LABEL = 20
_REACH = 4
"""The column that is a text, so that it begins where its head does."""


def picture(recipe: Recipe, analysis: Analysis, sizes: Sizes) -> str:
    """The lines of `recipe show`: the canonical text with its id, each part, and the whole."""
    unit, size = prefix(analysis.flops_per_token)
    rows = [
        ("part", "parameters", f"{unit}FLOPs", "memory", "reach", "state", "window"),
        ("", "", "/token", "", "", "/token", ""),
    ]
    for label, part in (*_labelled(analysis.tree.parts), ("total", analysis.tree)):
        rows.append((label, *figures(part, sizes, size)))
    below = [conditions(analysis, sizes), _training(analysis.memory(sizes.batch)), generation(analysis)]
    return "\n".join([heading(recipe), "", *_aligned(rows), "", *map(_indented, filter(None, below)), ""])


def figures(part: Part, sizes: Sizes, size: float) -> tuple[str, str, str, str, str, str]:
    """What a part costs and reaches, as texts; FLOPs in units of `size`.

    What stands around the body and has no operations only adds its parameters: it sees nothing.
    """
    return (
        f"{part.parameters:,}",
        f"{part.flops / sizes.length / size:,.1f}",
        in_bytes(part.activations(sizes.batch)) if part.saved else "",
        reach(part.reach) if part.flops or part.form not in (Form.FRAME, Form.SHARED) else "",
        in_bytes(part.state * STATE_BYTES) if part.state else "",
        in_bytes(part.window * STATE_BYTES) if part.window else "",
    )


def data(recipe: Recipe, analysis: Analysis, sizes: Sizes) -> dict[str, Any]:
    """What `picture` shows, with all digits; a reach without bound is "all", memory is in bytes."""
    return {**summary(recipe, analysis, sizes), "parts": [_part(part, sizes) for part in analysis.tree.parts]}


def summary(recipe: Recipe, analysis: Analysis, sizes: Sizes) -> dict[str, Any]:
    """The figures of a whole recipe, and what they depend on."""
    memory = analysis.memory(sizes.batch)
    return {
        "recipe": recipe.text,
        "id": recipe.id,
        **sizes.as_data(),
        "parameters": analysis.parameters,
        "flops": analysis.flops,
        "flops_per_token": analysis.flops_per_token,
        "training_flops": analysis.training_flops,
        "memory": {
            "parameters": memory.parameters,
            "gradients": memory.gradients,
            "optimizer": memory.optimizer,
            "activations": memory.activations,
            "logits": memory.logits,
            "peak": memory.peak,
        },
        "reach": reach_data(analysis.reach),
        "causal": analysis.causal,
        "state_per_token": analysis.state,
        "window": analysis.window,
    }


def heading(recipe: Recipe, before: str = "") -> str:
    """The canonical text and the id, on one line if there is room."""
    name, text = f"id {recipe.id}", f"{before}{recipe.text}"
    gap = WIDTH - len(text) - len(name)
    return f"{text}{' ' * gap}{name}" if gap >= 2 else f"{text}\n{' ' * len(before)}{name}"


def conditions(analysis: Analysis, sizes: Sizes) -> str:
    """Whether a position sees later ones, and what the figures depend on."""
    return f"{'causal' if analysis.causal else 'bidirectional'}, {sizes.words()}"


def generation(analysis: Analysis) -> str:
    """What generation keeps, if it keeps anything."""
    state, window = (in_bytes(STATE_BYTES * count) for count in (analysis.state, analysis.window))
    kept = [f"{state} for each token"] if analysis.state else []
    kept += [f"a window of {window}"] if analysis.window else []
    return f"generation keeps {' and '.join(kept)}" if kept else ""


def _training(memory: Memory) -> str:
    """What a training step holds, item by item."""
    return (
        f"training holds {in_bytes(memory.parameters)} of parameters, {in_bytes(memory.gradients)} of "
        f"gradients, {in_bytes(memory.optimizer)} of Adam's, {in_bytes(memory.activations)} of activations "
        f"and {in_bytes(memory.logits)} of logits; about {in_bytes(memory.peak)} at the peak"
    )


def _indented(text: str) -> str:
    """The text within 80 columns."""
    return fill(text, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _labelled(parts: tuple[Part, ...]) -> Iterator[tuple[str, Part]]:
    """Every part of the model, top down, drawn as a tree below those of the first level."""
    for part in parts:
        yield part.label, part
        yield from _below(part, "")


def _below(part: Part, indent: str) -> Iterator[tuple[str, Part]]:
    for number, inner in enumerate(part.parts, 1):
        last = number == len(part.parts)
        yield f"{indent}{'└─' if last else '├─'} {inner.label}", inner
        yield from _below(inner, indent + ("   " if last else "│  "))


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Columns as wide as their widest text; those without any figure are left out.

    Where a line would pass 80 columns, the last column goes, and then labels are cropped.
    """
    columns = [column for column in zip(*rows, strict=True) if any(column[2:])]
    widths = [max(map(len, column)) for column in columns]
    if sum(widths) + 2 * len(widths) > WIDTH and len(columns) > _REACH + 2:
        columns, widths = columns[:-1], widths[:-1]
    widths[0] = min(widths[0], max(_SHORTEST_LABEL, WIDTH - sum(widths[1:]) - 2 * len(widths)))
    for row in zip(*columns, strict=True):
        cells = [
            f"{crop(text, width):<{width}}" if place in (0, _REACH) else f"{text:>{width}}"
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield f"  {'  '.join(cells)}".rstrip()


def _part(part: Part, sizes: Sizes) -> dict[str, Any]:
    return {
        "label": part.label,
        "parameters": part.parameters,
        "flops": part.flops,
        "activations": part.activations(sizes.batch),
        "reach": reach_data(part.reach),
        "state_per_token": part.state,
        "window": part.window,
        "parts": [_part(inner, sizes) for inner in part.parts],
    }
