"""Views of blocks: a line for each block, or the whole specification of one block."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

from ...grammar import (
    CostContext,
    Fault,
    Parameter,
    RecipeError,
    Spec,
    configure,
    lookup,
    nodes,
    parse,
    render,
)
from ...grammar.analysis.analyse import block_cost
from ...grammar.signature import default_text, describe_values, example, signature
from ...grammar.vocabulary.spec import OWNER, spec_of
from ...reporting.recipes.breakdown import STATE_BYTES
from ...studies.text.units import (
    WIDTH,
    format_bytes,
    plural,
    reach_as_json,
    si_prefix,
    truncate,
)
from ..output import fit_line

if TYPE_CHECKING:
    from ...blocks.testing.passport import Passport

_MAX_SIGNATURE_WIDTH = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEntry:
    """A block of the recipe language."""

    kind: Literal["blocks"] = "blocks"
    name: str
    role: str
    signature: str
    summary: str
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPage(BlockEntry):
    """The output of `show` for a block: its parameters, and the cost of an example."""

    equation: str
    source: str
    parameters: Sequence[Mapping[str, Any]]
    example: Mapping[str, Any]


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


def format_blocks(entries: Sequence[BlockEntry]) -> str:
    """Return a line for each block, grouped by package, with activemem's blocks first.

    Lines are cut to the width of a terminal, but not in a file or a pipe.
    """
    texts = {each.name: each.signature for each in entries}
    width = min(max(map(len, texts.values())), _MAX_SIGNATURE_WIDTH)
    if sys.stdout.isatty():
        texts = {name: truncate(text, width) for name, text in texts.items()}
    roles = max(len(each.role) for each in entries)
    rows: list[str] = []
    owned = sorted(entries, key=lambda each: (each.owner != OWNER, each.owner, each.name))
    for owner, group in groupby(owned, key=lambda each: each.owner):
        rows += [*([""] if rows else []), owner]
        rows += [
            fit_line(f"  {texts[each.name]:<{width}}  {each.role:<{roles}}  {each.summary}") for each in group
        ]
    return "\n".join(rows)


def block_entry(spec: Spec) -> BlockEntry:
    """Return the entry of a block for JSON output."""
    return BlockEntry(
        name=spec.name,
        role=spec.role.value,
        signature=signature(spec),
        summary=spec.summary,
        owner=spec.owner,
    )


def format_block(page: BlockPage) -> str:
    """Format the facts about a block, with its cost and reach in an example model."""
    text, kind, example = page.signature, f"{page.role}, {page.owner}", page.example
    gap = WIDTH - len(text) - len(kind)
    rows = [f"{text}{' ' * gap}{kind}"] if gap >= 2 else [*_wrapped(text, 0), kind]
    rows.append("")
    for text in (page.summary, page.equation, page.source):
        rows += _wrapped(text, 2)
    if parameters := spec_of(page.name).parameters:
        rows += ["", *_parameters(parameters)]
    where = f"at width {example['d_model']}, {plural(example['length'], 'token')}"
    rows += ["", *_wrapped(f"{example['recipe']} {where}, in a bidirectional model", 2)]
    names, figures = zip(*_figures(example), strict=True)
    width = max(map(len, names))
    for name, figure in zip(names, figures, strict=True):
        line = f"{name:<{width}}  {figure}"
        rows += wrap(line, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * (width + 6))
    return "\n".join([*rows, ""])


def block_page(text: str) -> BlockPage:
    """Return the facts about a block, such as `conv(k=3)`, with unrounded numbers in an example model.

    A reach without limit is "all". Raise RecipeError for a text that is not one block.
    """
    block = _parse_block(text)
    spec, context = spec_of(block.name), CostContext(config=configure(d_model=128, dropout=0.0), length=40)
    cost = block_cost(block, context.config, length=context.length)
    return BlockPage(
        **asdict(block_entry(spec)),
        equation=spec.equation,
        source=spec.source,
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
            "shared": dict(cost.shared),
            "flops": cost.flops,
            "flops_per_token": cost.flops / context.length,
            "state_per_token": cost.state,
            "window": cost.window,
            "reach": reach_as_json(spec.reach(spec.settings(block), context)),
        },
    )


def _figures(example: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    shared = "".join(f", and {count:,} in the {key}" for key, count in example["shared"].items())
    unit, size = si_prefix(example["flops_per_token"])
    left, right = example["reach"].values()
    yield "parameters", f"{example['parameters']:,}{shared}"
    yield f"{unit}FLOPs/token", f"{example['flops_per_token'] / size:,.1f}"
    yield "reach", str(left) if left == right and left in ("all", 0) else f"{left} ← · → {right}"
    cache, fixed = (format_bytes(example[key] * STATE_BYTES) for key in ("state_per_token", "window"))
    yield "cache/token", f"{cache} kept of each past token in a stream"
    if example["window"]:
        yield "fixed state", f"{fixed} kept in a stream of any length"


def _parameters(parameters: Sequence[Parameter]) -> Iterator[str]:
    width = max(len(parameter.name) for parameter in parameters)
    for parameter in parameters:
        given = default_text(parameter)
        needed = "required" if given is None else f"default {given}"
        line = f"{parameter.name:<{width}}  {parameter.meaning}: {describe_values(parameter)}; {needed}"
        yield from wrap(line, WIDTH, initial_indent="  ", subsequent_indent=" " * (width + 4))


def _wrapped(text: str, indent: int) -> list[str]:
    first, others = " " * indent, " " * (indent + 2)
    return wrap(text, WIDTH, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)


_MARKS = {True: "pass", False: "FAIL", None: "–"}


def format_passport(passport: Passport) -> str:
    """Format the checks of a block: the block, and a line for each check with its result."""
    width = max(len(check.name) for check in passport.checks)
    rows = [
        f"{passport.block}{', as checked by the tests of activemem' if passport.recorded else ''}",
        "",
    ]
    for check in passport.checks:
        start = f"  {check.name:<{width}}  {_MARKS[check.passed]:<4}  "
        indent = " " * len(start)
        rows += wrap(
            check.finding,
            WIDTH,
            initial_indent=start,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
    return "\n".join(rows)
