"""Generated parts of the documents: the recipe language's rules, blocks and limits."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence

from activemem.blocks.models.model import MAX_PARAMETERS
from activemem.errors import MAX_FAULTS
from activemem.grammar import CostContext, Spec, configure, lookup, parser, render
from activemem.grammar.analysis.analyse import block_cost, block_memory
from activemem.grammar.checker import MAX_BLOCKS
from activemem.grammar.parser import MAX_DEPTH, MAX_DIGITS
from activemem.grammar.recipe import MAX_LENGTH
from activemem.grammar.signature import example, signature
from activemem.grammar.vocabulary.spec import builtin_names
from activemem.studies.text.units import format_reach

_RULE = re.compile(r"`(\w+) = (.+?)`[.;]", re.DOTALL)


def grammar() -> str:
    """Return the grammar rules in the docstrings of the parser's methods, as a code block."""
    docs = [
        inspect.getdoc(method) or "" for method in vars(parser._RecipeParser).values() if callable(method)
    ]
    rules = [found.groups() for doc in docs if (found := _RULE.match(doc))]
    wide = max(len(name) for name, _ in rules)
    return "\n".join(["```", *(f"{name:<{wide}} = {text}" for name, text in rules), "```"])


def blocks() -> str:
    """Return a description of each block of the package."""
    rows = [(f"`{signature(spec)}`", spec.role, spec.equation, spec.source) for spec in _own_specs()]
    return _table(("block", "role", "equation", "source"), rows)


def costs() -> str:
    """Return the cost of the smallest example of each block at width 128 and 40 tokens, with dropout."""
    rows: list[tuple[str, ...]] = []
    for spec in _own_specs():
        block = example(spec)
        settings = spec.settings(block)
        both, causal = (
            CostContext(config=configure(d_model=128, causal=causal, dropout=0.1), length=40)
            for causal in (False, True)
        )
        cost = block_cost(block, both.config, length=40)
        kept = block_memory(block, both.config, length=40) // 4
        figures = (cost.parameters, cost.flops // 40, round(kept / 40), cost.state, cost.window)
        sees = (format_reach(spec.reach(settings, both)), format_reach(spec.reach(settings, causal)))
        rows.append((f"`{render(block)}`", *(f"{figure:,}" for figure in figures), *sees))
    heads = (
        "block",
        "parameters",
        "FLOPs/token",
        "kept/token",
        "cache/token",
        "fixed state",
        "reach",
        "causal",
    )
    return _table(heads, rows)


def limits() -> str:
    """Return the limits with the places of their definitions."""
    rows = (
        ("characters of a recipe, as given and as rendered", MAX_LENGTH),
        ("open parentheses", MAX_DEPTH),
        ("digits of a number", MAX_DIGITS),
        ("blocks when all repeats are written out", MAX_BLOCKS),
        ("faults that are reported for one recipe", MAX_FAULTS),
        ("parameters of a model, unless `build` gets another limit", MAX_PARAMETERS),
    )
    return _table(("at most", ""), [(what, f"{most:,}") for what, most in rows])


GENERATED = {"grammar": grammar, "blocks": blocks, "costs": costs, "limits": limits}
"""The generators by the name in a document's mark."""


def _own_specs() -> Iterator[Spec]:
    """Yield the blocks that need no other package, by name."""
    for name in builtin_names():
        if (spec := lookup(name)) is not None:
            yield spec


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, [":--"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
