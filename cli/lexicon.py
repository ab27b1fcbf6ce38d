"""Blocks as they are shown: a line for each, or one with all that its specification says of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import wrap
from typing import Any

from ..grammar import Context, Cost, Fault, Parameter, RecipeError, Spec, lookup, nodes, parse, render
from ..grammar.plugins import Problem
from ..grammar.signature import default, example, signature, takes
from ..grammar.vocabulary import OWNER
from .anatomy import STATE_BYTES
from .figures import WIDTH, crop, in_bytes, plural, prefix, reach, reach_data

_WIDEST_SIGNATURE = 30


def find(text: str) -> nodes.Block:
    """The block of a name, with small values for what it needs, or of a name with arguments.

    Raises RecipeError, with the nearest name, for what is none.
    """
    spec = lookup(text)
    if spec is not None:
        return example(spec)
    recipe = parse(text)
    if not isinstance(recipe.root, nodes.Block):
        raise RecipeError(text, [Fault(0, len(text), f"expected one block, got {recipe.text}")])
    if recipe.holes or recipe.dimensions:
        raise RecipeError(text, [Fault(0, len(text), "expected a block with nothing left open")])
    return recipe.root


def lines(specs: Sequence[Spec]) -> str:
    """A line for each block, those of a package together, this package's first."""
    texts = {spec.name: signature(spec) for spec in specs}
    wide = min(max(map(len, texts.values())), _WIDEST_SIGNATURE)
    roles = max(len(spec.role) for spec in specs)
    rows: list[str] = []
    owned = sorted(specs, key=lambda spec: (spec.owner != OWNER, spec.owner, spec.name))
    for owner, group in groupby(owned, key=lambda spec: spec.owner):
        rows += [*([""] if rows else []), owner]
        rows += [
            crop(f"  {crop(texts[spec.name], wide):<{wide}}  {spec.role:<{roles}}  {spec.summary}", WIDTH)
            for spec in group
        ]
    return "\n".join(rows)


def list_data(specs: Sequence[Spec], problems: Sequence[Problem]) -> dict[str, Any]:
    """What `lines` shows, with nothing left out, and what is wrong with blocks of other packages."""
    return {
        "blocks": [_summary(spec) for spec in specs],
        "problems": [
            {"owner": each.owner, "group": each.group, "name": each.name, "message": each.message}
            for each in problems
        ],
    }


def picture(block: nodes.Block, place: Context) -> str:
    """Everything about a block, and what it costs and sees at a place."""
    spec = _spec(block)
    text, kind = signature(spec), f"{spec.role}, {spec.owner}"
    gap = WIDTH - len(text) - len(kind)
    rows = [f"{text}{' ' * gap}{kind}"] if gap >= 2 else [*_wrapped(text, 0), kind]
    rows.append("")
    for told in (spec.summary, spec.equation, spec.source):
        rows += _wrapped(told, 2)
    if spec.parameters:
        rows += ["", *_parameters(spec.parameters)]
    sight = "causal" if place.causal else "bidirectional"
    rows += [
        "",
        *_wrapped(f"{render(block)} at width {place.width}, {plural(place.length, 'token')}, {sight}", 2),
    ]
    names, figures = zip(*_figures(spec, block, place), strict=True)
    wide = max(map(len, names))
    for name, figure in zip(names, figures, strict=True):
        told = f"{name:<{wide}}  {figure}"
        rows += wrap(told, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * (wide + 6))
    return "\n".join([*rows, ""])


def data(block: nodes.Block, place: Context) -> dict[str, Any]:
    """What `picture` shows, with all digits; a reach without bound is "all"."""
    spec = _spec(block)
    cost = spec.cost(spec.settings(block), place)
    return {
        **_summary(spec),
        "equation": spec.equation,
        "source": spec.source,
        "parameters": [_parameter(parameter) for parameter in spec.parameters],
        "example": {
            "recipe": render(block),
            "d_model": place.width,
            "length": place.length,
            "causal": place.causal,
            "parameters": cost.parameters,
            "shared": dict(cost.shared),
            "flops": cost.flops,
            "flops_per_token": cost.flops / place.length,
            "state_per_token": cost.state,
            "window": cost.window,
            "reach": reach_data(spec.reach(spec.settings(block), place)),
        },
    }


def _figures(spec: Spec, block: nodes.Block, place: Context) -> Iterator[tuple[str, str]]:
    """What a block costs and how far it sees, each with its name."""
    cost: Cost = spec.cost(spec.settings(block), place)
    shared = "".join(f", and {count:,} in the {key}" for key, count in cost.shared.items())
    unit, size = prefix(cost.flops / place.length)
    yield "parameters", f"{cost.parameters:,}{shared}"
    yield f"{unit}FLOPs/token", f"{cost.flops / place.length / size:,.1f}"
    yield "reach", reach(spec.reach(spec.settings(block), place))
    yield "state/token", in_bytes(cost.state * STATE_BYTES)
    if cost.window:
        yield "window", in_bytes(cost.window * STATE_BYTES)


def _parameters(parameters: Sequence[Parameter]) -> Iterator[str]:
    """A line for each parameter: its name, what it takes, its default, and what it means."""
    wide = max(len(parameter.name) for parameter in parameters)
    for parameter in parameters:
        given = default(parameter)
        needed = "required" if given is None else f"{given} if not given"
        told = f"{parameter.name:<{wide}}  {parameter.meaning}: {takes(parameter)}; {needed}"
        yield from wrap(told, WIDTH, initial_indent="  ", subsequent_indent=" " * (wide + 4))


def _summary(spec: Spec) -> dict[str, str]:
    return {
        "name": spec.name,
        "role": spec.role.value,
        "signature": signature(spec),
        "summary": spec.summary,
        "owner": spec.owner,
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "kind": parameter.kind,
        "default": default(parameter),
        "low": parameter.low,
        "high": parameter.high,
        "words": parameter.words,
        "meaning": parameter.meaning,
    }


def _spec(block: nodes.Block) -> Spec:
    spec = lookup(block.name)
    assert spec is not None, f"{block.name} has left the vocabulary"
    return spec


def _wrapped(text: str, indent: int) -> list[str]:
    """The text within 80 columns, lines after the first indented by two more."""
    first, others = " " * indent, " " * (indent + 2)
    return wrap(text, WIDTH, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)
