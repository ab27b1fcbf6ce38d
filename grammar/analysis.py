"""What a recipe costs and reaches, from its text alone: exact, and without building anything.

The whole model is counted: an embedding of `vocab` rows, the body, a final normalisation where the norm is
"pre", and a linear output with bias. A normalisation has a gain and an offset for each channel, one
normalisation stands at each sub-layer of the body's series and of any series or repeat inside a sum. A body
is walked once however often it is repeated, so the time depends on the text alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .faults import Fault, RecipeError
from .nodes import Block, Choice, Hole, Integer, Node, Real, Repeat, Series, Sum, Tied, Value, walk
from .parts import Form, Memory, Part, copies, in_series, side_by_side
from .recipe import Recipe, parse
from .roles import mixes
from .text import render
from .vocabulary import Context, Norm, Position, Reach, lookup


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A whole model, embedding and output included, on one sequence; counted as Cost counts."""

    length: int
    vocab: int
    tree: Part

    @property
    def parameters(self) -> int:
        """All trained numbers of the model."""
        return self.tree.parameters

    @property
    def flops(self) -> int:
        """Operations of a forward pass over one sequence."""
        return self.tree.flops

    @property
    def flops_per_token(self) -> float:
        """Forward operations for each token of the sequence."""
        return self.flops / self.length

    @property
    def training_flops(self) -> int:
        """Operations of a forward and a backward pass, the latter taken as twice the former."""
        return 3 * self.flops

    @property
    def reach(self) -> Reach:
        """How many tokens to each side can move an output."""
        return self.tree.reach

    @property
    def causal(self) -> bool:
        """Whether no position sees a later one, masked or not."""
        return self.reach.right == 0

    @property
    def state(self) -> int:
        """Numbers that generation keeps of each past token."""
        return self.tree.state

    @property
    def window(self) -> int:
        """Numbers that generation keeps however many tokens are past."""
        return self.tree.window

    def memory(self, batch: int) -> Memory:
        """What a training step with Adam holds, for so many sequences, in single precision."""
        return Memory(
            parameters=4 * self.parameters,
            activations=self.tree.activations(batch),
            logits=4 * batch * self.length * self.vocab,
        )


def analyse(
    recipe: str | Recipe,
    *,
    d_model: int,
    length: int,
    vocab: int,
    causal: bool = False,
    norm: Norm = "pre",
    position: Position = "timing",
    dropout: float = 0.1,
) -> Analysis:
    """The cost and reach of the model that the recipe describes, its settings as `build` takes them.

    Raises RecipeError for a wrong text, and when it still has holes or search dimensions.
    """
    recipe = parse(recipe)
    _check_settled(recipe)
    context = Context(
        width=d_model, length=length, causal=causal, dropout=dropout, norm=norm, position=position
    )
    return Analysis(length=length, vocab=vocab, tree=_Model(context).whole(recipe.root, vocab))


def analyse_part(part: Value, context: Context) -> Part:
    """The cost and reach of a recipe that a block takes as an argument: a residual stack where it stands.

    For the `cost` and the `reach` of that block's specification, which know how often it is applied, and
    whether in a context of another width or length.
    """
    return _Model(context).layers(part)


@dataclass(frozen=True, slots=True)
class _Model:
    """One model, or a stack inside of a block, taken apart."""

    context: Context

    @property
    def _plane(self) -> int:
        """The numbers of one sequence of the model's width."""
        return self.context.length * self.context.width

    def whole(self, root: Node, vocab: int) -> Part:
        """The model, its parts in the order in which data pass through them.

        Saved besides the body are the tokens and targets, of eight bytes each, and the softmax of the logits.
        """
        width, length, plane = self.context.width, self.context.length, self._plane
        layers = self.layers(root).with_input(plane)
        body = layers.parts if isinstance(root, Series) else (layers,)
        parts = [Part(label="embedding", parameters=vocab * width, flops=0, saved=2 * length), *body]
        shared = layers.shared.items()
        parts += [Part(label=key, form=Form.SHARED, parameters=count, flops=0) for key, count in shared]
        if self.context.norm == "pre":
            parts.append(self._final_norm())
        output = Part(
            label="output",
            parameters=vocab * (width + 1),
            flops=2 * plane * vocab,
            saved=plane + length * (vocab + 2),
        )
        return in_series("model", (*parts, output), plane)

    def layers(self, node: Value) -> Part:
        """A residual stack: each block or sum in it is a sub-layer with a normalisation."""
        match node:
            case Series():
                parts = tuple(self.layers(part) for part in node.parts)
                return in_series(render(node), parts, self._plane)
            case Repeat(count=int(count)):
                one = self.layers(node.body)
                found = self._copies(f"{count} ×", node.body, one, count)
                return replace(found, parameters=count * one.parameters)
            case Tied(body=Repeat(count=int(count), body=body)):
                return self._copies(f"tied {count} ×", body, self.layers(body), count)
            case _:
                return self._sublayer(node)

    def _copies(self, label: str, body: Node, one: Part, count: int) -> Part:
        """So many copies of a body, its parts those of a series or itself."""
        parts = one.parts if isinstance(body, Series) else (one,)
        return copies(label, one, count, parts, self._plane)

    def _sublayer(self, node: Value) -> Part:
        """A branch with its normalisation, as one step of the residual stream.

        Saved are the normalisation's input and two figures of each token, the branch's input if that is
        another, and the mask of dropout. A timing signal makes the input anew.
        """
        branch, plane, norm = self._branch(node), self._plane, self.context.norm
        timed = self.context.position == "timing" and mixes(node)
        before = norm == "pre" or branch.saves_input  # whether the input of the sub-layer is saved
        within = norm == "post" or branch.saves_input  # whether what lies behind its first step is
        planes = within + (self.context.dropout > 0) + (timed and before)
        return replace(
            branch,
            parameters=branch.parameters + self._norm_parameters,
            saved=branch.saved + planes * plane + 2 * self.context.length,
            saves_input=before and not timed,
        )

    def _branch(self, node: Value) -> Part:
        """One part of a sum, or what a sub-layer computes on its normalised input."""
        match node:
            case Block():
                return self._block(node)
            case Sum():
                return side_by_side(render(node), tuple(self._branch(part) for part in node.parts))
            case _:
                return self.layers(node)

    def _block(self, block: Block) -> Part:
        """A block by itself, as its specification counts it."""
        spec = lookup(block.name)
        assert spec is not None, f"{block.name} has left the vocabulary"
        settings = spec.settings(block)
        cost = spec.cost(settings, self.context)
        return Part(
            label=render(block),
            form=Form.BLOCK,
            parameters=cost.parameters,
            flops=cost.flops,
            reach=spec.reach(settings, self.context),
            state=cost.state,
            window=cost.window,
            saved=cost.saved,
            saved_once=cost.saved_once,
            saves_input=cost.saves_input,
            shared=cost.shared,
        )

    def _final_norm(self) -> Part:
        saved = self._plane + 2 * self.context.length
        return Part(label="final norm", parameters=self._norm_parameters, flops=0, saved=saved)

    @property
    def _norm_parameters(self) -> int:
        return 2 * self.context.width  # a gain and an offset for each channel


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
