"""What a recipe costs and reaches, from its text alone: exact, and without building anything.

The whole model is counted: an embedding of `vocab` rows, the body, a final normalisation where the norm is
"pre", and a linear output with bias; the config says what else stands there. One normalisation stands at each
sub-layer of the body's series and of any series or repeat inside a sum, but for pools, which have none. A
body is walked once however often it is repeated, so the time depends on the text alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Unpack

from ...diagnostics import Fault
from ..canonical import render
from ..errors import RecipeError
from ..model_config import ModelConfig, ModelKeywords, configure
from ..nodes import (
    BlockNode,
    ChoiceDimension,
    HoleNode,
    IntegerDimension,
    Node,
    RealDimension,
    RepeatNode,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
    walk,
)
from ..norms import NORMS
from ..positions import POSITIONS
from ..recipe import Recipe, parse
from ..vocabulary.cost_tree import (
    SOURCE_EMBEDDING,
    TARGET_EMBEDDING,
    ModelPart,
    PartKind,
    TrainingMemory,
    compose_repeat,
    compose_series,
    compose_sum,
    with_input_after,
)
from ..vocabulary.output_kinds import VECTOR, mixes_positions, output_kind
from ..vocabulary.registry import lookup, spec_of
from ..vocabulary.spec import Cost, CostContext, Reach, Role, WantedCosts
from .input_output_costs import bottleneck_part, input_part, output_part, position_parts
from .measured_costs import measure_block, measure_parameters

CrossAttentionFactory = Callable[[Value, CostContext], ModelPart]
"""What stands behind a sub-layer in a decoder, made of that sub-layer and of where it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A whole model, embedding and output included, on one sequence; counted as Cost counts.

    `outputs` is how many numbers it gives: of a clustered vocabulary those of the head.
    """

    length: int
    outputs: int
    tree: ModelPart

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

    def memory(self, batch: int) -> TrainingMemory:
        """What a training step with Adam holds, for a batch of sequences, in single precision."""
        return TrainingMemory(
            parameters=4 * self.parameters,
            activations=self.tree.activation_bytes(batch),
            logits=4 * batch * self.outputs,
            working=self.tree.working_bytes(batch),
        )


def analyse(
    recipe: str | Recipe,
    config: ModelConfig | None = None,
    *,
    length: int,
    past: int = 0,
    scored: int | None = None,
    activation_checkpointing: bool = False,
    **settings: Unpack[ModelKeywords],
) -> Analysis:
    """The cost and reach of the model that the recipe describes, its settings as `build` takes them.

    In front of the sequence `past` positions are held, as in a stream. Outputs are computed at `scored`
    positions of it, by default at all. With `activation_checkpointing` training keeps only the inputs of
    sub-layers, and the rest of one at a time. Blocks are measured from their modules, which loads torch
    unless their costs are remembered. Raises RecipeError for a wrong text, and where it has holes or search
    dimensions; ModelConfigError for settings that cannot be; BuildError for a block without a module.
    """
    recipe, config = parse(recipe), configure(config, settings)
    config.check()
    _check_resolved(recipe)
    context = CostContext(
        config=config,
        length=length,
        past=past,
        checkpoints=activation_checkpointing,
    )
    scored = 1 if output_kind(recipe.root) == VECTOR else length if scored is None else scored
    tree = _Analyser(context).model(recipe.root, scored)
    return Analysis(length=length, outputs=scored * config.outputs, tree=tree)


def count_parameters(recipe: str | Recipe, config: ModelConfig) -> int:
    """Return the parameters of the model, as `analyse` finds them; nothing else is measured."""
    return _partly_analysed(recipe, config, "parameters").parameters


def find_reach(recipe: str | Recipe, config: ModelConfig) -> Reach:
    """Return how far the model sees, as `analyse` finds it; nothing is measured."""
    return _partly_analysed(recipe, config, "reach").reach


def _partly_analysed(recipe: str | Recipe, config: ModelConfig, wanted: WantedCosts) -> ModelPart:
    recipe = parse(recipe)
    _check_resolved(recipe)
    return _Analyser(CostContext(config=config, length=1, wanted=wanted)).model(recipe.root, 1)


def analyse_part(part: Value, context: CostContext) -> ModelPart:
    """The cost and reach of a recipe that a block takes as an argument: a residual stack where it stands.

    For the `cost` and the `reach` of that block's specification, which know how often it is applied, and
    whether in a context of another width or length.
    """
    return _Analyser(context).layers(part)


def analyse_stack(
    part: Value, context: CostContext, cross_attention: CrossAttentionFactory | None = None
) -> tuple[ModelPart, ...]:
    """The parts of a residual stack that stands within a whole model, its last normalisation among them.

    A `cross_attention` stands behind each sub-layer in which positions mix.
    """
    model = _Analyser(context, cross_attention)
    positions = position_parts(context.config, context.length)
    parts = (*positions, *model.stack_parts(part, model.layers(part)))
    return (*parts, model.stack_final_norm) if context.config.norm == "pre" else parts


def analyse_block(block: BlockNode, context: CostContext) -> ModelPart:
    """A block by itself, without a normalisation and a residual sum around it."""
    return _Analyser(context).block(block)


def block_cost(block: BlockNode, context: CostContext) -> Cost:
    """Return what a block costs in a context: measured, or stated by a transducer of its parts."""
    spec = spec_of(block.name)
    settings = spec.settings(block)
    if spec.cost is not None:
        return spec.cost(settings, context)
    state, window = spec.generation_state(settings, context)
    match context.wanted:
        case "all":
            found = measure_block(block, context)
        case "parameters":
            found = measure_parameters(block, context.config)
        case "reach":
            found = Cost(parameters=0)
    return replace(found, state=state, window=window)


@dataclass(frozen=True, slots=True)
class _Analyser:
    """One model, or a stack inside of a block, taken apart; a crossing stands behind sub-layers that mix."""

    context: CostContext
    cross_attention: CrossAttentionFactory | None = None

    @property
    def _activation_size(self) -> int:
        """The numbers of one sequence of the model's width."""
        return self.context.length * self.context.width

    def model(self, root: Node, scored: int) -> ModelPart:
        """The model, its parts in the order in which data pass through them; outputs at so many positions."""
        if isinstance(root, BlockNode) and (spec := lookup(root.name)) and spec.role is Role.TRANSDUCER:
            return self._transduction(root, scored)
        length, config = self.context.length, self.context.config
        positions = 1 if output_kind(root) == VECTOR else length
        layers = self.layers(root).with_saved_input(self._activation_size)
        body = layers.parts if isinstance(root, SeriesNode) else (layers,)
        parts = [input_part(self.context), *position_parts(config, length), *body, *_shared(layers)]
        last = layers
        if config.bottleneck:
            last = bottleneck_part(config, length)
            parts.append(last)
        if config.norm == "pre":
            last = with_input_after(last, self._final_norm(positions), positions * self.context.width)
            parts.append(last)
        parts.append(with_input_after(last, output_part(self.context, scored), scored * self.context.width))
        return compose_series("model", tuple(parts), self._activation_size)

    def _transduction(self, root: BlockNode, scored: int) -> ModelPart:
        """A whole model of a source and a target as long: embeddings of both, the block, and the output."""
        context, cost = self.context, block_cost(root, self.context)
        source = replace(context, config=context.config.source)
        block = self.block(root).with_saved_input(self._activation_size)
        output = output_part(context, scored, cost.outputs).with_saved_input(scored * cost.outputs)
        parts = (
            replace(input_part(source, SOURCE_EMBEDDING), predecessors=()),
            replace(input_part(context, TARGET_EMBEDDING), predecessors=()),
            replace(block, predecessors=(TARGET_EMBEDDING, SOURCE_EMBEDDING)),
            *_shared(block),
            replace(output, saved=output.saved + 2 * scored),  # where targets stand, eight bytes each
        )
        return compose_series("model", parts, self._activation_size)

    def layers(self, node: Value) -> ModelPart:
        """A residual stack: each block or sum in it is a sub-layer with a normalisation."""
        match node:
            case SeriesNode():
                return self._series(node)
            case RepeatNode(count=int(count)):
                one = self.layers(node.body)
                found = self._copies(f"{count} ×", node.body, one, count)
                return replace(found, parameters=count * one.parameters)
            case TiedNode(body=RepeatNode(count=int(count), body=body)):
                return self._copies(f"tied {count} ×", body, self.layers(body), count)
            case _ if self._has_cross_attention(node):
                return self._with_cross_attention(node)
            case _:
                return self._step(node)

    def stack_parts(self, node: Value, found: ModelPart) -> tuple[ModelPart, ...]:
        """The parts of a series, or of a sub-layer and its crossing; else the part itself."""
        return found.parts if isinstance(node, SeriesNode) or self._has_cross_attention(node) else (found,)

    def _has_cross_attention(self, node: Value) -> bool:
        """Whether it is a sub-layer with a crossing behind it."""
        return (
            self.cross_attention is not None
            and isinstance(node, BlockNode | SumNode)
            and mixes_positions(node)
        )

    def _with_cross_attention(self, node: Value) -> ModelPart:
        """A sub-layer and its crossing, whose input is counted with it: behind it all is as without it."""
        assert self.cross_attention is not None, "there is no crossing"
        found = self._step(node)
        crossing = replace(self.cross_attention(node, self.context), saves_output=found.saves_output)
        return compose_series(render(node), (found, crossing), self._activation_size)

    def _series(self, node: SeriesNode) -> ModelPart:
        """The parts one after another; behind a pool they map a sequence of one."""
        parts: list[ModelPart] = []
        model = self
        for part in node.parts:
            found = model.layers(part)
            found = with_input_after(parts[-1], found, model._activation_size) if parts else found
            parts += model.stack_parts(part, found)
            if output_kind(part) == VECTOR:
                config = replace(self.context.config, position="none")
                model = _Analyser(replace(self.context, config=config, length=1))
        return compose_series(render(node), tuple(parts), self._activation_size)

    def _copies(self, label: str, body: Node, one: ModelPart, count: int) -> ModelPart:
        """`count` copies of a body, its parts those of a series or itself."""
        return compose_repeat(label, one, count, self.stack_parts(body, one), self._activation_size)

    def _step(self, node: Value) -> ModelPart:
        """A sub-layer, whose input alone is kept with activation checkpointing."""
        if not self.context.checkpoints:
            return self._sublayer(node)
        return _Analyser(replace(self.context, checkpoints=False))._sublayer(node).checkpointed()

    def _sublayer(self, node: Value) -> ModelPart:
        """A branch with its normalisation, as one step of the residual stream; a pool is its branch alone.

        Saved are the normalisation's input and what it computes of each token, the branch's input if that is
        another, and the mask of the residual's dropout. A timing signal makes the input anew.
        """
        branch, plane, config = self._branch(node), self._activation_size, self.context.config
        if output_kind(node) == VECTOR:
            return branch
        normed = config.norm != "none"
        timed = POSITIONS[config.position].before_mixers and mixes_positions(node)
        before = config.norm == "pre" or branch.saves_input  # whether the input of the sub-layer is saved
        given = branch.saves_output and not config.residual  # whether the branch saves the step's outcome
        # whether what lies behind the first step of the sub-layer is saved
        within = {"pre": branch.saves_input, "post": not given, "none": False}[config.norm]
        dropped = plane if config.residual and config.dropout else 0
        planes = within + (timed and before)
        return replace(
            branch,
            parameters=branch.parameters + normed * self._norm_parameters,
            saved=branch.saved + planes * plane + dropped + normed * self._norm_saved,
            saves_input=before and not timed,
            saves_output=given and config.norm != "post",
        )

    def _branch(self, node: Value) -> ModelPart:
        """One part of a sum, or what a sub-layer computes on its normalised input."""
        match node:
            case BlockNode():
                return self.block(node)
            case SumNode():
                return compose_sum(render(node), tuple(self._branch(part) for part in node.parts))
            case _:
                return _Analyser(self.context).layers(node)

    def block(self, block: BlockNode) -> ModelPart:
        """A block by itself, as its specification counts it."""
        cost, spec = block_cost(block, self.context), spec_of(block.name)
        return ModelPart(
            label=render(block),
            kind=PartKind.TRANSDUCER if cost.parts else PartKind.BLOCK,
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

    def _final_norm(self, positions: int) -> ModelPart:
        """The normalisation in front of the output; it saves its input and what it says of each position."""
        kind, width = NORMS[self.context.config.norm_kind], self.context.width
        return ModelPart(
            label="final norm",
            parameters=kind.parameters(width),
            flops=0,
            saved=kind.saved(width) * positions,
            saves_input=True,
        )

    @property
    def stack_final_norm(self) -> ModelPart:
        """The last normalisation of a stack within a whole model, with its input."""
        return self._final_norm(self.context.length).with_saved_input(self._activation_size)

    @property
    def _norm_parameters(self) -> int:
        return NORMS[self.context.config.norm_kind].parameters(self.context.width)

    @property
    def _norm_saved(self) -> int:
        """The numbers that a normalisation saves of a sequence, beside its input."""
        return self.context.length * NORMS[self.context.config.norm_kind].saved(self.context.width)


def _shared(part: ModelPart) -> list[ModelPart]:
    """What several blocks of it have in common, each counted once."""
    return [
        ModelPart(label=key, kind=PartKind.SHARED, parameters=count, flops=0)
        for key, count in part.shared.items()
    ]


def _check_resolved(recipe: Recipe) -> None:
    """Raise RecipeError for every place that is still open, where it first appears in the canonical text."""
    faults: dict[str, Fault] = {}
    for node in walk(recipe.root):
        if not isinstance(node, HoleNode | IntegerDimension | RealDimension | ChoiceDimension):
            continue
        text = render(node)
        start = recipe.text.index(text)
        what = (
            f"the hole '{node.name}' must be filled" if isinstance(node, HoleNode) else "this must be settled"
        )
        faults.setdefault(text, Fault(start, start + len(text), f"{what} before the recipe is analysed"))
    if faults:
        raise RecipeError(recipe.text, faults.values())
