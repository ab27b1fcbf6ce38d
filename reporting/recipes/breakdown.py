"""The costs of each part of a recipe, and its reach: how far it looks back and ahead in the sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from ...grammar import Analysis, ModelPart, PartKind, Recipe
from ...grammar.vocabulary.spec import uncounted_kernels
from ...studies.text.units import (
    WIDTH,
    format_bytes,
    format_reach,
    plural,
    reach_as_json,
    si_prefix,
    truncate,
)

STATE_BYTES = 2
"""The bytes of each number that generation keeps in memory: models generate in 16 bits."""

_MIN_LABEL_WIDTH = 20
_REACH = 4
"""The index of the text column, which is left-aligned."""


def render(recipe: Recipe, analysis: Analysis, batch: int) -> str:
    """Return the text of `recipe show`: the canonical text with its id, every part, and the total."""
    unit, size = si_prefix(analysis.flops_per_token)
    rows = [
        ("part", "parameters", f"{unit}FLOPs", "memory", "reach", "cache", "fixed"),
        ("", "", "/token", "", "", "/token", "state"),
    ]
    tree = analysis.tree_with_memory(batch)
    parts = [each for part in tree.parts for each in ((part.label, part), *_iter_inner(part, ""))]
    for label, part in (*parts, ("total", tree)):
        rows.append((label, *format_costs(part, analysis.length, size)))
    below = (
        fill(text, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        for text in sentences(analysis, batch)
    )
    return "\n".join([heading(recipe), "", *_aligned(rows), "", *below, ""])


def sentences(analysis: Analysis, batch: int) -> list[str]:
    """Return the sentences that `recipe show` prints below its table of parts."""
    memory, kernels = analysis.memory(batch), uncounted_kernels(analysis.root)
    training = (
        f"training holds {format_bytes(memory.peak)}, ± 20 %: {format_bytes(memory.parameters)} of "
        f"parameters, their gradients and Adam's moments, {format_bytes(memory.activations)} of activations, "
        f"and {format_bytes(memory.temporary)} of other tensors at once"
    )
    return list(filter(None, [conditions(analysis, batch), training, generation_memory(analysis), kernels]))


def format_costs(part: ModelPart, length: int, size: float) -> tuple[str, str, str, str, str, str]:
    """Return a part's costs as texts for the columns of the table.

    FLOPs are per token of a sequence of `length` tokens, in units of `size`. Parts outside the body that have
    no FLOPs have no reach.
    """
    return (
        f"{part.parameters:,}",
        f"{part.flops / length / size:,.1f}",
        format_bytes(part.kept) if part.kept else "",
        format_reach(part.reach) if part.flops or part.kind not in (PartKind.FRAME, PartKind.SHARED) else "",
        format_bytes(part.state * STATE_BYTES) if part.state else "",
        format_bytes(part.window * STATE_BYTES) if part.window else "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCosts:
    """The costs of a part of a recipe, and of the parts inside this part."""

    label: str
    parameters: int
    flops: int
    activations: int
    reach: dict[str, int | str]
    state_per_token: int
    window: int
    parts: tuple[PartCosts, ...]

    @classmethod
    def of(cls, part: ModelPart) -> PartCosts:
        """Return the costs of a model part."""
        return cls(
            label=part.label,
            parameters=part.parameters,
            flops=part.flops,
            activations=part.kept,
            reach=reach_as_json(part.reach),
            state_per_token=part.state,
            window=part.window,
            parts=tuple(map(cls.of, part.parts)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeCosts:
    """The costs of a recipe, such as its parameters, FLOPs and memory.

    FLOPs are those of a forward pass.

    `memory` has the bytes that training needs. An unbounded reach is "all". `parts` is the tree of its parts,
    `difference` is relative to the first recipe.
    """

    recipe: str
    id: str
    d_model: int
    length: int
    vocab: int | None
    masked: bool  # no position sees later positions
    norm: str
    batch: int
    dropout: float
    parameters: int
    flops: int
    flops_per_token: float
    training_flops: int
    memory: dict[str, int]
    reach: dict[str, int | str]
    causal: bool
    state_per_token: int
    window: int
    parts: tuple[PartCosts, ...] = ()
    difference: dict[str, Any] | None = None

    @classmethod
    def of(cls, recipe: Recipe, analysis: Analysis, batch: int) -> RecipeCosts:
        """Return the costs of a recipe and of each of its parts."""
        settings, interface = analysis.config.settings, analysis.config.interface
        memory = analysis.memory(batch)
        items = ("parameters", "activations", "temporary", "peak")
        return cls(
            recipe=recipe.text,
            id=recipe.id,
            d_model=settings.d_model,
            length=analysis.length,
            vocab=interface.vocab,
            masked=interface.causal,
            norm=settings.norm,
            batch=batch,
            dropout=settings.dropout,
            parameters=analysis.parameters,
            flops=analysis.flops,
            flops_per_token=analysis.flops_per_token,
            training_flops=analysis.training_flops,
            memory={item: getattr(memory, item) for item in items},
            reach=reach_as_json(analysis.reach),
            causal=analysis.causal,
            state_per_token=analysis.state,
            window=analysis.window,
            parts=tuple(map(PartCosts.of, analysis.tree_with_memory(batch).parts)),
        )


def heading(recipe: Recipe, before: str = "") -> str:
    """Return the canonical text of a recipe and its id, on one line if there is room."""
    name, text = f"id {recipe.id}", f"{before}{recipe.text}"
    gap = WIDTH - len(text) - len(name)
    return f"{text}{' ' * gap}{name}" if gap >= 2 else f"{text}\n{' ' * len(before)}{name}"


def conditions(analysis: Analysis, batch: int) -> str:
    """Describe the model that the costs are for: causal or bidirectional, and its sizes."""
    return f"{'causal' if analysis.causal else 'bidirectional'}, {describe_sizes(analysis, batch)}"


def describe_sizes(analysis: Analysis, batch: int) -> str:
    """Describe width, vocabulary, norms, tied weights, sequence length, batch and dropout in one line."""
    config, settings, vocab = analysis.config, analysis.config.settings, analysis.config.interface.vocab
    rates = {
        "attention": settings.attention_dropout,
        "embedding": settings.embedding_dropout,
        "input": settings.input_dropout,
    }
    parts = [f"width {settings.d_model}", *([f"vocab {vocab}"] if vocab else [])]
    parts += ["no norms" if settings.norm == "none" else f"{settings.norm}-norm"]
    parts += [] if settings.residual else ["no residuals"]
    parts += ["tied" + (" but for biases" if settings.tied_bias else "")] if settings.tied else []
    if settings.cutoffs:
        projected = ", all projected" if settings.project_first_cluster else ""
        parts.append(f"{len(config.clusters)} clusters{projected}")
    parts.append(plural(analysis.length, "token") + (" of a stream" if analysis.sizes["past"] else ""))
    parts += [f"batch {batch}", f"dropout {settings.dropout:g}"]
    parts += [f"{name} dropout {rate:g}" for name, rate in rates.items() if rate]
    return ", ".join(parts)


def generation_memory(analysis: Analysis) -> str:
    """Return a text on the memory that generation needs for the model's state; "" without a state."""
    state, window = (format_bytes(STATE_BYTES * count) for count in (analysis.state, analysis.window))
    kept = [f"{state} for each token"] if analysis.state else []
    kept += [f"a fixed state of {window}"] if analysis.window else []
    return f"generation in 16 bits keeps {' and '.join(kept)}" if kept else ""


def _iter_inner(part: ModelPart, indent: str) -> Iterator[tuple[str, ModelPart]]:
    """Yield the parts inside a part, with labels that draw the tree."""
    for number, inner in enumerate(part.parts, 1):
        last = number == len(part.parts)
        yield f"{indent}{'└─' if last else '├─'} {inner.label}", inner
        yield from _iter_inner(inner, indent + ("   " if last else "│  "))


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield the rows of the table of parts with aligned columns, without columns that have no numbers."""
    columns = [column for column in zip(*rows, strict=True) if any(column[2:])]
    widths = [max(map(len, column)) for column in columns]
    if sum(widths) + 2 * len(widths) > WIDTH and len(columns) > _REACH + 2:
        columns, widths = columns[:-1], widths[:-1]
    widths[0] = min(widths[0], max(_MIN_LABEL_WIDTH, WIDTH - sum(widths[1:]) - 2 * len(widths)))
    for row in zip(*columns, strict=True):
        cells = [
            f"{truncate(text, width):<{width}}" if place in (0, _REACH) else f"{text:>{width}}"
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield f"  {'  '.join(cells)}".rstrip()
