"""What a recipe costs and reaches, from its text alone: exact, and without building anything.

The whole model is counted: an embedding of `vocab` rows, the body, a final normalisation where the norm is
"pre", and a linear output with bias. A normalisation has a gain and an offset for each channel, one
normalisation stands at each sub-layer of the body's series and of any series or repeat inside a sum. A body
is walked once however often it is repeated, so the time depends on the text alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from .faults import Fault, RecipeError
from .nodes import Block, Choice, Hole, Integer, Node, Real, Repeat, Series, Sum, Tied, Value, walk
from .recipe import Recipe
from .text import render
from .vocabulary import Context, Reach, lookup

Norm = Literal["pre", "post"]
"""Where a sub-layer's normalisation stands: in front of it, or behind its residual sum."""

_HERE = Reach(left=0, right=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a model: what it costs on one sequence, and its own parts.

    A repeat holds the parts of one copy and the figures of all.
    A sub-layer's figures include its normalisation; what is `shared` is not among `parameters`.
    """

    label: str
    parameters: int
    flops: int
    reach: Reach = _HERE
    state: int = 0
    shared: Mapping[str, int] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A whole model, embedding and output included, on one sequence; counted as Cost counts."""

    parameters: int
    flops: int
    length: int
    reach: Reach
    state: int
    tree: Part

    @property
    def flops_per_token(self) -> float:
        """Forward operations for each token of the sequence."""
        return self.flops / self.length

    @property
    def training_flops(self) -> int:
        """Operations of a forward and a backward pass, the latter taken as twice the former."""
        return 3 * self.flops


def analyse(
    recipe: Recipe, *, d_model: int, length: int, vocab: int, causal: bool = False, norm: Norm = "pre"
) -> Analysis:
    """The cost and reach of the model that the recipe describes.

    Raises RecipeError when it still has holes or search dimensions.
    """
    _check_settled(recipe)
    context = Context(width=d_model, length=length, causal=causal)
    layers = _layers(recipe.root, context)
    body = layers.parts if isinstance(recipe.root, Series) else (layers,)
    parts = [Part(label="embedding", parameters=vocab * d_model, flops=0), *body]
    parts += [Part(label=key, parameters=count, flops=0) for key, count in layers.shared.items()]
    if norm == "pre":
        parts.append(Part(label="final norm", parameters=_norm(context), flops=0))
    output = Part(label="output", parameters=vocab * (d_model + 1), flops=2 * length * d_model * vocab)
    tree = _after_another("model", (*parts, output))
    return Analysis(
        parameters=tree.parameters,
        flops=tree.flops,
        length=length,
        reach=tree.reach,
        state=tree.state,
        tree=tree,
    )


def _layers(node: Value, context: Context) -> Part:
    """A residual stack: each block or sum in it is a sub-layer with a normalisation."""
    match node:
        case Series():
            return _after_another(render(node), tuple(_layers(part, context) for part in node.parts))
        case Repeat(count=int(count)):
            one = _layers(node.body, context)
            copies = _copies(f"{count} ×", node.body, one, count)
            return replace(copies, parameters=count * one.parameters)
        case Tied(body=Repeat(count=int(count), body=body)):
            one = _layers(body, context)
            return _copies(f"tied {count} ×", body, one, count)
        case _:
            branch = _branch(node, context)
            return replace(branch, parameters=branch.parameters + _norm(context))


def _branch(node: Value, context: Context) -> Part:
    """One part of a sum, or what a sub-layer computes on its normalised input."""
    match node:
        case Block():
            return _block(node, context)
        case Sum():
            return _side_by_side(node, context)
        case _:
            return _layers(node, context)


def _block(block: Block, context: Context) -> Part:
    """A block by itself, as its specification counts it."""
    spec = lookup(block.name)
    assert spec is not None, f"{block.name} has left the vocabulary"
    settings = spec.settings(block)
    cost = spec.cost(settings, context)
    return Part(
        label=render(block),
        parameters=cost.parameters,
        flops=cost.flops,
        reach=spec.reach(settings, context),
        state=cost.state,
        shared=cost.shared,
    )


def _copies(label: str, body: Node, one: Part, count: int) -> Part:
    """A body applied so many times, with the parameters of one application."""
    return Part(
        label=label,
        parameters=one.parameters,
        flops=count * one.flops,
        reach=Reach(left=count * one.reach.left, right=count * one.reach.right),
        state=count * one.state,
        shared=one.shared,
        parts=one.parts if isinstance(body, Series) else (one,),
    )


def _after_another(label: str, parts: tuple[Part, ...]) -> Part:
    """Parts in series: what one reaches, the next one reaches further."""
    left = sum(part.reach.left for part in parts)
    right = sum(part.reach.right for part in parts)
    return _together(label, parts, Reach(left=left, right=right))


def _side_by_side(node: Sum, context: Context) -> Part:
    """The parts of a sum: it reaches as far as the furthest of them."""
    parts = tuple(_branch(part, context) for part in node.parts)
    left = max(part.reach.left for part in parts)
    right = max(part.reach.right for part in parts)
    return _together(render(node), parts, Reach(left=left, right=right))


def _together(label: str, parts: tuple[Part, ...], reach: Reach) -> Part:
    """Parts with all that they cost; what several share is held once."""
    return Part(
        label=label,
        parameters=sum(part.parameters for part in parts),
        flops=sum(part.flops for part in parts),
        reach=reach,
        state=sum(part.state for part in parts),
        shared={key: count for part in parts for key, count in part.shared.items()},
        parts=parts,
    )


def _norm(context: Context) -> int:
    return 2 * context.width  # a gain and an offset for each channel


def _check_settled(recipe: Recipe) -> None:
    """Raise RecipeError for every place that is still open, where it first appears in the canonical text."""
    faults: dict[str, Fault] = {}
    for node in walk(recipe.root):
        if not isinstance(node, Hole | Integer | Real | Choice):
            continue
        text = render(node)
        start = recipe.text.index(text)
        what = f"the hole '{node.name}' must be filled" if isinstance(node, Hole) else "this must be settled"
        faults.setdefault(text, Fault(start, start + len(text), f"{what} before the recipe is analysed"))
    if faults:
        raise RecipeError(recipe.text, faults.values())
