"""A recipe taken apart: a line for each part with what it costs and reaches, or the same as data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..grammar import Analysis, Part, Reach, Recipe
from .figures import WIDTH, crop, in_bytes, plural, prefix, reach

_BYTES = 2
"""Keys and values are counted as 16-bit numbers, as models keep them in generation."""

_SHORTEST_LABEL = 20
_HEADS = ("parameters", "FLOPs/token", "reach", "state/token")


def picture(recipe: Recipe, analysis: Analysis, *, causal: bool, norm: str) -> str:
    """The lines of `recipe show`: the canonical text with its id, each part, and the whole."""
    unit, size = prefix(analysis.flops_per_token)
    rows: list[tuple[str, ...]] = [("part", _HEADS[0], unit + _HEADS[1], *_HEADS[2:])]
    for label, part in _labelled(analysis.tree.parts):
        rows.append(_row(label, part, analysis.length, size))
    rows.append(_row("total", analysis.tree, analysis.length, size))
    conditions = (
        f"  {'causal' if causal else 'bidirectional'}, {norm}-norm, {plural(analysis.length, 'token')}"
    )
    return "\n".join([_heading(recipe), "", *_aligned(rows), "", conditions, ""])


def data(
    recipe: Recipe, analysis: Analysis, *, d_model: int, vocab: int, causal: bool, norm: str
) -> dict[str, Any]:
    """What `picture` shows, with all digits; a reach without bound is "all"."""
    return {
        "recipe": recipe.text,
        "id": recipe.id,
        "d_model": d_model,
        "length": analysis.length,
        "vocab": vocab,
        "causal": causal,
        "norm": norm,
        "parameters": analysis.parameters,
        "flops": analysis.flops,
        "flops_per_token": analysis.flops_per_token,
        "training_flops": analysis.training_flops,
        "reach": _reach(analysis.reach),
        "state_per_token": analysis.state,
        "parts": [_part(part) for part in analysis.tree.parts],
    }


def _heading(recipe: Recipe) -> str:
    name = f"id {recipe.id}"
    gap = WIDTH - len(recipe.text) - len(name)
    return f"{recipe.text}{' ' * gap}{name}" if gap >= 2 else f"{recipe.text}\n{name}"


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


def _row(label: str, part: Part, length: int, size: float) -> tuple[str, ...]:
    flops = f"{part.flops / length / size:,.1f}"
    state = in_bytes(part.state * _BYTES) if part.state else ""
    sees = reach(part.reach) if part.flops else ""  # what only adds its parameters sees nothing
    return (label, f"{part.parameters:,}", flops, sees, state)


def _aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Columns as wide as their widest text, labels cropped where a line would pass 80 columns."""
    first, *others = [max(map(len, column)) for column in zip(*rows, strict=True)]
    first = min(first, max(_SHORTEST_LABEL, WIDTH - sum(others) - 2 * len(rows[0])))
    for label, parameters, flops, sees, state in rows:
        line = (
            f"  {crop(label, first):<{first}}  {parameters:>{others[0]}}  {flops:>{others[1]}}"
            f"  {sees:<{others[2]}}  {state:>{others[3]}}"
        )
        yield line.rstrip()


def _part(part: Part) -> dict[str, Any]:
    return {
        "label": part.label,
        "parameters": part.parameters,
        "flops": part.flops,
        "reach": _reach(part.reach),
        "state_per_token": part.state,
        "parts": [_part(inner) for inner in part.parts],
    }


def _reach(value: Reach) -> dict[str, int | str]:
    return {
        "left": "all" if value.left == math.inf else int(value.left),
        "right": "all" if value.right == math.inf else int(value.right),
    }
