"""Recipes side by side: the figures of each, and how they differ from those of the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from string import ascii_lowercase
from typing import Any, NamedTuple

from ...grammar import Analysis, Recipe
from ...studies.text.units import WIDTH, format_bytes, format_reach, si_prefix
from .breakdown import STATE_BYTES, RecipeCosts, Sizes, heading

_COMPARED = ("parameters", "flops", "flops_per_token", "training_flops", "state_per_token", "window")
_GAP = 3


class _ComparedFigure(NamedTuple):
    """A line: its name, the number that it shows, and the format of the number."""

    name: str
    value_of: Callable[[Analysis], float]
    format_value: Callable[[float], str]


def render(recipes: Sequence[Recipe], analyses: Sequence[Analysis], sizes: Sizes) -> str:
    """Return the recipes by letter, and below them a column for each, as many side by side as fit."""
    letters = [letter(number) for number in range(len(recipes))]
    listed = [heading(recipe, f"  {name}  ") for name, recipe in zip(letters, recipes, strict=True)]
    lines = _figures(analyses, sizes)
    columns = [
        _column(name, analysis, analyses[0] if number else None, lines)
        for number, (name, analysis) in enumerate(zip(letters, analyses, strict=True))
    ]
    names = ["", *(line.name for line in lines), "reach", "causal"]
    return "\n".join([*listed, "", *_side_by_side(names, columns), f"  {sizes.describe()}", ""])


def costs(recipes: Sequence[Recipe], analyses: Sequence[Analysis], sizes: Sizes) -> list[RecipeCosts]:
    """Return the figures of each recipe with all digits, and by how much they differ from the first's."""
    every = [
        RecipeCosts.of(recipe, analysis, sizes) for recipe, analysis in zip(recipes, analyses, strict=True)
    ]
    first = every[0]

    def difference(each: RecipeCosts) -> dict[str, Any]:
        memory = {item: count - first.memory[item] for item, count in each.memory.items()}
        return {name: getattr(each, name) - getattr(first, name) for name in _COMPARED} | {"memory": memory}

    return [replace(each, parts=(), difference=difference(each)) for each in every]


def letter(number: int) -> str:
    """Return the short name of a recipe: a to z, then a1 to z1 and so on."""
    turn, place = divmod(number, len(ascii_lowercase))
    return f"{ascii_lowercase[place]}{turn or ''}"


def _figures(analyses: Sequence[Analysis], sizes: Sizes) -> list[_ComparedFigure]:
    """Return the lines that have a figure in any of the recipes."""
    unit, size = si_prefix(max(analysis.flops_per_token for analysis in analyses))

    def in_bytes_each(count: float) -> str:
        return format_bytes(STATE_BYTES * count) if count else "0"

    lines = (
        _ComparedFigure("parameters", lambda one: one.parameters, lambda count: f"{count:,}"),
        _ComparedFigure(
            f"{unit}FLOPs/token", lambda one: one.flops_per_token, lambda count: f"{count / size:,.1f}"
        ),
        _ComparedFigure("activations", lambda one: one.memory(sizes.batch).activations, format_bytes),
        _ComparedFigure("peak memory", lambda one: one.memory(sizes.batch).peak, format_bytes),
        _ComparedFigure("state/token", lambda one: one.state, in_bytes_each),
        _ComparedFigure("window", lambda one: one.window, in_bytes_each),
    )
    return [line for line in lines if any(line.value_of(one) for one in analyses)]


def _column(
    name: str, analysis: Analysis, first: Analysis | None, lines: Sequence[_ComparedFigure]
) -> list[tuple[str, str]]:
    cells = [(name, "")]
    for line in lines:
        value = line.value_of(analysis)
        cells.append(
            (line.format_value(value), "" if first is None else _difference(value, line.value_of(first)))
        )
    return [*cells, (format_reach(analysis.reach), ""), ("yes" if analysis.causal else "no", "")]


def _difference(value: float, first: float) -> str:
    """Return the difference of a figure from the first's, as a share of that; empty if that is 0."""
    if value == first:
        return "="
    if first == 0:
        return ""
    share = 100 * (value / first - 1)
    digits = 1 if abs(share) < 10 else 0
    return f"{share:+,.{digits}f} %".replace("-", "−")


def _side_by_side(names: Sequence[str], columns: Sequence[list[tuple[str, str]]]) -> Iterator[str]:
    """Columns beside each other within 80 columns of text; those without room follow below."""
    label = max(map(len, names))
    texts = [_texts(column) for column in columns]
    while texts:
        room, taken = WIDTH - 2 - label, 0
        while texts[taken:] and (taken == 0 or room >= _GAP + len(texts[taken][0])):
            room -= _GAP + len(texts[taken][0])
            taken += 1
        for name, *cells in zip(names, *texts[:taken], strict=True):
            yield f"  {name:<{label}}{''.join(' ' * _GAP + cell for cell in cells)}".rstrip()
        yield ""
        texts = texts[taken:]


def _texts(column: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(value) for value, _ in column)
    beside = max(len(difference) for _, difference in column)
    if not beside:
        return [f"{value:>{width}}" for value, _ in column]
    return [f"{value:>{width}}  {difference:>{beside}}" for value, difference in column]
