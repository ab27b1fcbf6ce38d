"""What a recipe costs and reaches, from its text alone: exact, and without building anything.

The whole model is counted: an embedding of `vocab` rows, the body, a final normalisation where the norm is
"pre", and a linear output with bias; `frame` has what else may stand there. A normalisation has a gain and an
offset for each channel, one normalisation stands at each sub-layer of the body's series and of any series or
repeat inside a sum, but for pools, which have none. A body is walked once however often it is repeated, so
the time depends on the text alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .faults import Fault, RecipeError
from .frame import Embedding, Frame, Init, input_part, output_part
from .nodes import Block, Choice, Hole, Integer, Node, Real, Repeat, Series, Sum, Tied, Value, walk
from .parts import SOURCE, TARGET, Form, Memory, Part, behind, copies, in_series, side_by_side
from .recipe import Recipe, parse
from .roles import VECTOR, mixes, output
from .text import render
from .vocabulary import Context, Cost, Norm, Position, Reach, Role, Spec, lookup

Crossing = Callable[[Value, Context], Part]
"""What stands behind a sub-layer in a decoder, made of that sub-layer and of where it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A whole model, embedding and output included, on one sequence; counted as Cost counts.

    `outputs` is how many numbers it gives: of a clustered vocabulary those of the head.
    """

    length: int
    outputs: int
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
            logits=4 * batch * self.outputs,
        )


def analyse(
    recipe: str | Recipe,
    *,
    d_model: int,
    length: int,
    vocab: int | None = None,
    source_vocab: int | None = None,
    causal: bool = False,
    norm: Norm = "pre",
    residual: bool = True,
    position: Position = "timing",
    dropout: float = 0.1,
    attention_dropout: float = 0.0,
    embedding_dropout: float = 0.0,
    embedding: Embedding = "scaled",
    tied: bool = False,
    cutoffs: tuple[int, ...] = (),
    init: Init = "glorot",
    columns: int | None = None,
    targets: int | None = None,
    past: int = 0,
) -> Analysis:
    """The cost and reach of the model that the recipe describes, its settings as `build` takes them.

    In front of the sequence `past` positions are held, as in a stream. Raises RecipeError for a wrong text,
    and when it still has holes or search dimensions; FrameError for settings that cannot be.
    """
    frame = Frame(
        d_model=d_model,
        vocab=vocab,
        source_vocab=source_vocab,
        causal=causal,
        norm=norm,
        residual=residual,
        position=position,
        dropout=dropout,
        attention_dropout=attention_dropout,
        embedding_dropout=embedding_dropout,
        embedding=embedding,
        tied=tied,
        cutoffs=cutoffs,
        init=init,
        columns=columns,
        targets=targets,
    )
    frame.check()
    return analyse_framed(parse(recipe), frame, length, past)


def analyse_framed(recipe: Recipe, frame: Frame, length: int, past: int = 0) -> Analysis:
    """The cost and reach of a recipe in its frame, whose settings go together; else as `analyse`."""
    _check_settled(recipe)
    model = _Model(frame.context(length, past))
    positions = 1 if output(recipe.root) == VECTOR else length
    return Analysis(length=length, outputs=positions * frame.outputs, tree=model.whole(recipe.root, frame))


def analyse_part(part: Value, context: Context) -> Part:
    """The cost and reach of a recipe that a block takes as an argument: a residual stack where it stands.

    For the `cost` and the `reach` of that block's specification, which know how often it is applied, and
    whether in a context of another width or length.
    """
    return _Model(context).layers(part)


def analyse_within(part: Value, context: Context, crossing: Crossing | None = None) -> tuple[Part, ...]:
    """The parts of a residual stack that stands within a whole model, its last normalisation among them.

    A `crossing` stands behind each sub-layer in which positions mix.
    """
    model = _Model(context, crossing)
    parts = model.inside(part, model.layers(part))
    return (*parts, model.closing) if context.norm == "pre" else parts


def analyse_block(block: Block, context: Context) -> Part:
    """A block by itself, without a normalisation and a residual sum around it."""
    return _Model(context).block(block)


@dataclass(frozen=True, slots=True)
class _Model:
    """One model, or a stack inside of a block, taken apart; a crossing stands behind sub-layers that mix."""

    context: Context
    crossing: Crossing | None = None

    @property
    def _plane(self) -> int:
        """The numbers of one sequence of the model's width."""
        return self.context.length * self.context.width

    def whole(self, root: Node, frame: Frame) -> Part:
        """The model, its parts in the order in which data pass through them."""
        if isinstance(root, Block) and (spec := lookup(root.name)) and spec.role is Role.TRANSDUCER:
            return self._transduction(root, frame)
        length = self.context.length
        positions = 1 if output(root) == VECTOR else length
        layers = self.layers(root).with_input(self._plane)
        body = layers.parts if isinstance(root, Series) else (layers,)
        parts = [input_part(frame, length), *body, *_shared(layers)]
        last, plane = layers, positions * self.context.width
        if frame.norm == "pre":
            last = behind(last, self._final_norm(positions), plane)
            parts.append(last)
        parts.append(behind(last, output_part(frame, positions), plane))
        return in_series("model", tuple(parts), self._plane)

    def _transduction(self, root: Block, frame: Frame) -> Part:
        """A whole model of a source and a target as long: embeddings of both, the block, and the output."""
        length, cost = self.context.length, self._cost(root)
        block = self.block(root).with_input(self._plane)
        parts = (
            replace(input_part(frame.source, length, SOURCE), follows=()),
            replace(input_part(frame, length, TARGET), follows=()),
            replace(block, follows=(TARGET, SOURCE)),
            *_shared(block),
            output_part(frame, length, cost.outputs),
        )
        return in_series("model", parts, self._plane)

    def layers(self, node: Value) -> Part:
        """A residual stack: each block or sum in it is a sub-layer with a normalisation."""
        match node:
            case Series():
                return self._series(node)
            case Repeat(count=int(count)):
                one = self.layers(node.body)
                found = self._copies(f"{count} ×", node.body, one, count)
                return replace(found, parameters=count * one.parameters)
            case Tied(body=Repeat(count=int(count), body=body)):
                return self._copies(f"tied {count} ×", body, self.layers(body), count)
            case _ if self._crossed(node):
                return self._crossing(node)
            case _:
                return self._sublayer(node)

    def inside(self, node: Value, found: Part) -> tuple[Part, ...]:
        """The parts of a series, or of a sub-layer and its crossing; else the part itself."""
        return found.parts if isinstance(node, Series) or self._crossed(node) else (found,)

    def _crossed(self, node: Value) -> bool:
        """Whether it is a sub-layer with a crossing behind it."""
        return self.crossing is not None and isinstance(node, Block | Sum) and mixes(node)

    def _crossing(self, node: Value) -> Part:
        """A sub-layer and its crossing, whose input is counted with it: behind it all is as without it."""
        assert self.crossing is not None, "there is no crossing"
        found = self._sublayer(node)
        crossing = replace(self.crossing(node, self.context), saves_output=found.saves_output)
        return in_series(render(node), (found, crossing), self._plane)

    def _series(self, node: Series) -> Part:
        """The parts one after another; behind a pool they map a sequence of one."""
        parts: list[Part] = []
        model = self
        for part in node.parts:
            found = model.layers(part)
            found = behind(parts[-1], found, model._plane) if parts else found
            parts += model.inside(part, found)
            if output(part) == VECTOR:
                model = _Model(replace(self.context, length=1, position="none"))
        return in_series(render(node), tuple(parts), self._plane)

    def _copies(self, label: str, body: Node, one: Part, count: int) -> Part:
        """So many copies of a body, its parts those of a series or itself."""
        return copies(label, one, count, self.inside(body, one), self._plane)

    def _sublayer(self, node: Value) -> Part:
        """A branch with its normalisation, as one step of the residual stream; a pool is its branch alone.

        Saved are the normalisation's input and two figures of each token, the branch's input if that is
        another, and the mask of the residual's dropout. A timing signal makes the input anew.
        """
        branch, plane, context = self._branch(node), self._plane, self.context
        if output(node) == VECTOR:
            return branch
        normed = context.norm != "none"
        timed = context.position == "timing" and mixes(node)
        before = context.norm == "pre" or branch.saves_input  # whether the input of the sub-layer is saved
        given = branch.saves_output and not context.residual  # whether the branch saves the step's outcome
        # whether what lies behind the first step of the sub-layer is saved
        within = {"pre": branch.saves_input, "post": not given, "none": False}[context.norm]
        planes = within + (context.residual and context.dropout > 0) + (timed and before)
        return replace(
            branch,
            parameters=branch.parameters + normed * self._norm_parameters,
            saved=branch.saved + planes * plane + normed * 2 * context.length,
            saves_input=before and not timed,
            saves_output=given and context.norm != "post",
        )

    def _branch(self, node: Value) -> Part:
        """One part of a sum, or what a sub-layer computes on its normalised input."""
        match node:
            case Block():
                return self.block(node)
            case Sum():
                return side_by_side(render(node), tuple(self._branch(part) for part in node.parts))
            case _:
                return _Model(self.context).layers(node)

    def block(self, block: Block) -> Part:
        """A block by itself, as its specification counts it."""
        cost, spec = self._cost(block), _spec(block)
        return Part(
            label=render(block),
            form=Form.WHOLE if cost.parts else Form.BLOCK,
            parameters=cost.parameters,
            flops=cost.flops,
            reach=spec.reach(spec.settings(block), self.context),
            state=cost.state,
            window=cost.window,
            saved=cost.saved,
            saved_once=cost.saved_once,
            saves_input=cost.saves_input,
            saves_output=cost.saves_output,
            shared=cost.shared,
            parts=cost.parts,
        )

    def _cost(self, block: Block) -> Cost:
        """What its specification counts here."""
        spec = _spec(block)
        return spec.cost(spec.settings(block), self.context)

    def _final_norm(self, positions: int) -> Part:
        """The normalisation in front of the output; saved are its input and two figures of each position."""
        count = self._norm_parameters
        return Part(label="final norm", parameters=count, flops=0, saved=2 * positions, saves_input=True)

    @property
    def closing(self) -> Part:
        """The last normalisation of a stack within a whole model, with its input."""
        return self._final_norm(self.context.length).with_input(self._plane)

    @property
    def _norm_parameters(self) -> int:
        return 2 * self.context.width  # a gain and an offset for each channel


def _spec(block: Block) -> Spec:
    """The specification of a block of a checked recipe."""
    spec = lookup(block.name)
    assert spec is not None, f"{block.name} has left the vocabulary"
    return spec


def _shared(part: Part) -> list[Part]:
    """What several blocks of it have in common, each counted once."""
    return [
        Part(label=key, form=Form.SHARED, parameters=count, flops=0) for key, count in part.shared.items()
    ]


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
