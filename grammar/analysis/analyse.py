"""Functions that compute the costs and the reach of a recipe's model.

The reach is how many tokens on the left and on the right can affect an output. The analysis counts the whole
model: an embedding of `vocab` rows, the body, a final normalisation if the norm is "pre", and a linear output
with bias. The config can change these parts. One normalisation belongs to each sub-layer of the body's series
and of any series or repeat inside a sum; pools have none. Parameters and FLOPs of blocks are added up, each
measured once, however often a recipe repeats it. The memory of a training step is measured from the whole
model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Literal, cast

from ...errors import Fault, check_arguments, number_fault
from ..canonical import identity, render
from ..dimensions import rebuild
from ..errors import RecipeError
from ..model_config import ModelConfig, configure
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
    children,
    walk,
)
from ..recipe import Recipe, parse
from ..seq2seq import cross_attention_width, is_recurrent, recurrent_units
from ..vocabulary.spec import (
    UNBOUNDED,
    VECTOR,
    CostContext,
    Reach,
    Role,
    Settings,
    as_bool,
    as_word,
    lookup,
    output_kind,
    spec_of,
)
from .measured_costs import Numbers, measure

NO_REACH = Reach(left=0, right=0)

PREVIOUS_PART, SOURCE_EMBEDDING, TARGET_EMBEDDING = "", "source embedding", "target embedding"
"""Names of predecessors: the previous part, whatever its label, and the embeddings of source and target."""


class PartKind(StrEnum):
    """Category of a part of a model, such as block, sum or series, which drawings show differently."""

    FRAME = "frame"  # outside the body
    SHARED = "shared"  # parameters shared by several blocks
    BLOCK = "block"
    SUM = "sum"
    SERIES = "series"
    COPIES = "copies"
    TRANSDUCER = "whole"  # a block that maps a source to a target by itself
    STACK = "stack"  # encoder or decoder of such a block


BYTES_PER_PARAMETER = 16
"""The bytes of a parameter in training with Adam: the weight, its gradient, and two moments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """Estimate of the memory that one training step needs, in bytes, within about 20 percent.

    It assumes Adam in single precision. `parameters` has the weights, their gradients and Adam's moments.
    `activations` is the memory stored for the backward pass, `temporary` what else the step allocates at
    once.
    """

    parameters: int
    activations: int
    temporary: int

    @property
    def peak(self) -> int:
        """Return the estimated peak memory in bytes."""
        return self.parameters + self.activations + self.temporary


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPart:
    """A part of a model: its costs for one sequence, and the smaller parts that it consists of.

    A part of kind COPIES has the inner parts of one copy and the total cost of all copies. A sub-layer's
    figures include its normalisation. `shared` parameters are not among `parameters`. In a whole model parts
    name their predecessors by label, the main stream first; None means the previous part. `modules` are the
    names of the modules that compute the part. `share` is the part's share of the memory that they store for
    the backward pass; it is above 1 if the model has more copies than are measured. `kept` is this share in
    bytes, in a tree that was made for a batch.
    """

    label: str
    kind: PartKind = PartKind.FRAME
    parameters: int = 0
    flops: int = 0
    reach: Reach = NO_REACH
    state: int = 0
    window: int = 0
    kept: int = 0
    shared: Mapping[str, int] = field(default_factory=dict)
    predecessors: tuple[str, ...] | None = None
    parts: tuple[ModelPart, ...] = ()
    modules: tuple[str, ...] = ()
    share: float = 1.0


def sum_parts(label: str, kind: PartKind, parts: tuple[ModelPart, ...], reach: Reach) -> ModelPart:
    """Join parts into one, and add up their costs; parameters that several of them share count once."""
    return ModelPart(
        label=label,
        kind=kind,
        parameters=sum(part.parameters for part in parts),
        flops=sum(part.flops for part in parts),
        reach=reach,
        state=sum(part.state for part in parts),
        window=sum(part.window for part in parts),
        shared={key: count for part in parts for key, count in part.shared.items()},
        parts=parts,
    )


def series(label: str, parts: tuple[ModelPart, ...]) -> ModelPart:
    """Join parts into a series, and add up their costs and reaches."""
    left, right = sum(part.reach.left for part in parts), sum(part.reach.right for part in parts)
    return sum_parts(label, PartKind.SERIES, parts, Reach(left=left, right=right))


WantedCosts = Literal["flops", "parameters", "reach"]
"""The costs that an analysis measures: FLOPs and parameters, only parameters, or none."""

_MAX_LENGTH = 10**8
"""The maximum length of an analysed sequence. Attention's scores of longer ones can exceed torch's sizes."""

_MOST_COPIES = 8
"""The maximum number of copies of a repeat whose memory is measured; that of further copies is computed."""

_FULL_REACH = Reach(left=UNBOUNDED, right=UNBOUNDED)

_Places = tuple[tuple[str, int], ...]
"""The places of a node in the measured model, one for each copy of the node. A place is the module name of a
stack, and the index of the node's first layer in that stack."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Analysis:
    """Parameters, FLOPs, reach and memory of a whole model, for one input sequence of `length` tokens."""

    length: int
    root: Node
    config: ModelConfig
    sizes: Mapping[str, int]

    def __repr__(self) -> str:
        return (
            f"<Analysis of {render(self.root)}: {self.parameters:,} parameters, {self.flops:,} FLOPs, "
            f"{self.length} tokens>"
        )

    @cached_property
    def tree(self) -> ModelPart:
        """Return the parts of the model, with their costs."""
        return _Analyser(self.config, self.length, past=self.sizes["past"]).model(
            self.root, self.sizes["scored"]
        )

    @cached_property
    def parameters(self) -> int:
        """Return the number of trained parameters. FLOPs are not measured for it."""
        return count_parameters(Recipe(self.root), self.config)

    @property
    def flops(self) -> int:
        """Return the FLOPs of a forward pass over one sequence."""
        return self.tree.flops

    @property
    def flops_per_token(self) -> float:
        """Return the forward FLOPs per token of the sequence."""
        return self.flops / self.length

    @property
    def training_flops(self) -> int:
        """Return the FLOPs of a training step on one sequence: three times the FLOPs of a forward pass.

        The backward pass counts as two forward passes.
        """
        return 3 * self.flops

    @property
    def reach(self) -> Reach:
        """Return how many tokens to the left and to the right of a position can affect its output."""
        return self.tree.reach

    @property
    def causal(self) -> bool:
        """Return whether the output at every position is independent of all later tokens."""
        return self.reach.right == 0

    @property
    def state(self) -> int:
        """Return how many numbers the model caches for each past token while it generates.

        Examples are the keys and values of attention.
        """
        return self.tree.state

    @property
    def window(self) -> int:
        """Return how many numbers the model caches while it generates, besides `state` for each past token.

        This count does not grow with the number of past tokens. An example is a recurrent state.
        """
        return self.tree.window

    def memory(self, batch: int) -> TrainingMemory:
        """Return the memory that one training step on `batch` sequences needs, with Adam in single precision.

        Measuring loads torch unless the result is cached.
        """
        found = self._step(batch)
        kept = sum(count for name, count in found.items() if name != "peak")
        return TrainingMemory(
            parameters=BYTES_PER_PARAMETER * self.parameters,
            activations=self.tree_with_memory(batch).kept,
            temporary=max(0, found["peak"] - kept),
        )

    def tree_with_memory(self, batch: int) -> ModelPart:
        """Return the tree of the model's parts, with the memory that each part needs for the backward pass.

        The field `kept` of a part is the number of bytes that it stores for the backward pass of `batch`
        sequences.
        """
        found = self._step(batch)
        return _with_memory(self.tree, {name.removeprefix("kept "): found[name] for name in found})

    def _step(self, batch: int) -> Numbers:
        return measure("step", cast("Node", _limited(self.root)), self.config, **self.sizes, batch=batch)


def analyse(
    recipe: str | Recipe,
    config: ModelConfig | None = None,
    *,
    length: int,
    past: int = 0,
    scored: int | None = None,
    **settings: object,
) -> Analysis:
    """Return the costs and the reach of a recipe's model, with the given config and settings.

    It is the model that `build` returns for the same recipe, config and settings. In a stream, `past`
    positions precede the sequence. Outputs are computed at `scored` of the sequence's positions, by default
    at all of them. Raise RecipeError for a wrong text, and for holes or search dimensions; ModelConfigError
    for invalid settings.

    Costs are measured when they are first read. That loads torch unless they are cached, and raises
    BuildError for a block without a module.
    """
    check_arguments(
        number_fault("length", length, least=1, most=_MAX_LENGTH),
        number_fault("past", past, least=0),
        number_fault("scored", scored, least=0, optional=True),
    )
    recipe, config = parse(recipe), configure(config, **settings)
    config.check()
    _check_resolved(recipe)
    root = recipe.root
    scored = 1 if output_kind(root) == VECTOR else length if scored is None else scored
    return Analysis(
        length=length,
        root=root,
        config=config,
        sizes={"length": length, "past": past, "scored": scored},
    )


def block_cost(block: BlockNode, config: ModelConfig, *, length: int, past: int = 0) -> ModelPart:
    """Return the costs and the reach of a block by itself, without the normalisation of its sub-layer."""
    if spec_of(block.name).role is Role.TRANSDUCER:
        whole = _Analyser(configure(config, vocab=config.interface.vocab or 1), length).model(block, length)
        return next(part for part in whole.parts if part.kind is PartKind.TRANSDUCER)
    return _Analyser(config, length, past=past).block(block, (), 1.0)


def block_memory(block: BlockNode, config: ModelConfig, *, length: int, batch: int = 1) -> int:
    """Return how many bytes one block stores for the backward pass of a batch, including its input."""
    alone = configure(
        config,
        vocab=1,
        norm="none",
        position="none",
        residual=False,
        embedding_dropout=0.0,
        input_dropout=0.0,
    )
    analysis = analyse(Recipe(block), alone, length=length)
    kinds = (PartKind.BLOCK, PartKind.TRANSDUCER)
    return next(part.kept for part in analysis.tree_with_memory(batch).parts if part.kind in kinds)


def count_parameters(recipe: str | Recipe, config: ModelConfig) -> int:
    """Return the number of parameters of a recipe's model, without measuring its FLOPs."""
    return _partly_analysed(recipe, config, "parameters").parameters


def find_reach(recipe: str | Recipe, config: ModelConfig) -> Reach:
    """Return how many tokens to the left and to the right can affect an output of a recipe's model.

    No costs are measured.
    """
    return _partly_analysed(recipe, config, "reach").reach


def _partly_analysed(recipe: str | Recipe, config: ModelConfig, wanted: WantedCosts) -> ModelPart:
    recipe = parse(recipe)
    _check_resolved(recipe)
    return _Analyser(config, 1, wanted=wanted).model(recipe.root, 1)


@dataclass(frozen=True)
class _Analyser:
    """Builder of a recipe's tree of ModelPart objects, for sequences of `length` tokens.

    `places` are the names of a part's modules in the measured model, whose repeats have at most _MOST_COPIES
    copies.
    """

    config: ModelConfig
    length: int
    past: int = 0
    wanted: WantedCosts = "flops"

    def model(self, root: Node, scored: int) -> ModelPart:
        if isinstance(root, BlockNode) and (spec := lookup(root.name)) and spec.role is Role.TRANSDUCER:
            return self._transduction(root, scored)
        found, config = self._frame(scored), self.config
        label = "embedding" if config.interface.columns is None else "input"
        positions = _framed("positions", found, ("positions",))
        read = ("embedding",) if positions.parameters else ("embedding", "positions")
        layers = self.layers(root, (("body", 0),))
        parts = [
            _framed("input", found, read, label=label),
            *((positions,) if positions.parameters else ()),
            *(layers.parts if isinstance(root, SeriesNode) else (layers,)),
            *_shared(layers),
        ]
        if config.interface.bottleneck:
            decoder = _framed("decoder", found, ("decoder",))
            parts.append(replace(decoder, reach=Reach(left=0, right=UNBOUNDED)))
        if config.settings.norm == "pre":
            parts.append(_framed("final norm", found, ("norm",)))
        parts.append(_framed("output", found, ("output",)))
        return replace(series("model", tuple(parts)), shared={})

    def layers(self, node: Value, places: _Places, share: float = 1.0) -> ModelPart:
        match node:
            case SeriesNode():
                return self._series(node, places, share)
            case RepeatNode(count=int(count), body=body):
                copies, step = min(count, _MOST_COPIES), _count_layers(body)
                inner = tuple((name, at + place * step) for name, at in places for place in range(copies))
                one = self.layers(body, inner, share / copies)
                found = _repeat(f"{count} ×", node.body, one, count)
                modules = _layer_names(inner, step)
                return replace(
                    found,
                    parameters=count * one.parameters,
                    modules=modules,
                    share=share * count / copies,
                )
            case TiedNode(body=RepeatNode(count=int(count), body=body)):
                copies = min(count, _MOST_COPIES)
                one = self.layers(body, places, share / copies)
                modules = _layer_names(places, _count_layers(body))
                found = _repeat(f"tied {count} ×", body, one, count)
                return replace(found, modules=modules, share=share * count / copies)
            case _:  # a sub-layer, with a norm unless it is a pool
                modules = _layer_names(places, 1)
                branch = self._branch(node, tuple(f"{name}.part" for name in modules), share)
                norm = 0 if output_kind(node) == VECTOR else self._norm_parameters
                return replace(branch, parameters=branch.parameters + norm, modules=modules)

    def _series(self, node: SeriesNode, places: _Places, share: float) -> ModelPart:
        """Join the parts of a series; after a pool, the others see a single vector."""
        parts: list[ModelPart] = []
        model = self
        for part in node.parts:
            found = model.layers(part, places, share)
            parts += found.parts if isinstance(part, SeriesNode) else (found,)
            places = tuple((name, at + _count_layers(part)) for name, at in places)
            if output_kind(part) == VECTOR:
                model = replace(self, config=configure(self.config, position="none"), length=1)
        return series(render(node), tuple(parts))

    def _branch(self, node: Value, modules: tuple[str, ...], share: float) -> ModelPart:
        """Return the content of a sub-layer, such as a block or a sum, without normalisation."""
        match node:
            case BlockNode():
                return self.block(node, modules, share)
            case SumNode():
                # the module of a sum has its parts in the order of their identities
                built = sorted(range(len(node.parts)), key=lambda place: identity(node.parts[place]))
                names = [
                    tuple(f"{name}.parts.{built.index(place)}" for name in modules)
                    for place in range(len(node.parts))
                ]
                parts = tuple(
                    self._branch(part, name, share) for part, name in zip(node.parts, names, strict=True)
                )
                left, right = (max(getattr(part.reach, side) for part in parts) for side in ("left", "right"))
                total = sum_parts(render(node), PartKind.SUM, parts, Reach(left=left, right=right))
                return replace(total, modules=modules, share=share)
            case _:
                return self.layers(node, tuple((name, 0) for name in modules), share)

    def block(self, block: BlockNode, modules: tuple[str, ...], share: float) -> ModelPart:
        spec, context = spec_of(block.name), CostContext(config=self.config, length=self.length)
        settings = spec.settings(block)
        match self.wanted:
            case "flops":
                found = measure("block", block, self.config, length=self.length, past=self.past)
            case "parameters":
                found = measure("parameters", block, self.config)
            case "reach":
                found = {}
        state, window = spec.generation_state(settings, context)
        if spec.package is not None and self.wanted == "flops":
            state, window = measure("cache", block, self.config).values()
        return ModelPart(
            label=render(block),
            kind=PartKind.BLOCK,
            parameters=found.get("parameters", 0),
            flops=found.get("flops", 0),
            reach=spec.reach(settings, context),
            state=state,
            window=window,
            shared={
                name.removeprefix("shared "): count
                for name, count in found.items()
                if name.startswith("shared ")
            },
            modules=modules,
            share=share,
        )

    def _transduction(self, root: BlockNode, scored: int) -> ModelPart:
        found: Numbers = {}
        if self.wanted != "reach":
            found = measure("transducer", root, self.config, length=self.length, scored=scored)
        spec, context = spec_of(root.name), CostContext(config=self.config, length=self.length)
        settings = spec.settings(root)
        parts = self._encoder_decoder(settings, found) if root.name == "seq2seq" else ()
        state, window = spec.generation_state(settings, context)
        block = _measured(render(root), found, ("body",), kind=PartKind.TRANSDUCER)
        # A plain Neural GPU writes all outputs at once, from the source alone.
        read = (SOURCE_EMBEDDING,) if root.name == "neural_gpu" else (TARGET_EMBEDDING, SOURCE_EMBEDDING)
        return series(
            "model",
            (
                _measured(SOURCE_EMBEDDING, found, ("source",), predecessors=()),
                _measured(TARGET_EMBEDDING, found, ("target",), predecessors=()),
                replace(
                    block,
                    reach=spec.reach(settings, context),
                    state=state + sum(part.state for part in parts),
                    window=window + sum(part.window for part in parts),
                    parts=parts,
                    predecessors=read,
                ),
                _measured("output", found, ("output",)),
            ),
        )

    def _encoder_decoder(self, settings: Settings, found: Numbers) -> tuple[ModelPart, ...]:
        """Return encoder, decoder and the connections between them.

        The encoded source that the decoder reads counts as state of the attention.
        """
        encoder, decoder = settings["encoder"], settings["decoder"]
        recurrent = is_recurrent(decoder)
        attention, feed = as_word(settings, "attention"), as_bool(settings, "feed")
        units = recurrent_units(settings, self.config.settings.d_model)
        read = self._stack("encoder", encoder, found, units=units, causal=False, module="body.encoder")
        read = replace(_without_state(read), predecessors=(SOURCE_EMBEDDING,))
        module = "body.decoder.block" if recurrent else "body.decoder"
        fed = "input and context" if feed else TARGET_EMBEDDING
        carried = ("encoder",) if not recurrent or is_recurrent(encoder) else ()
        written = self._stack("decoder", decoder, found, units=units, causal=True, module=module)
        parts = [read, replace(written, predecessors=(fed, *carried))]
        if feed:
            merge = _measured(fed, found, ("body.decoder.merge",), predecessors=(TARGET_EMBEDDING,))
            reach = Reach(left=UNBOUNDED, right=0)
            parts.insert(1, replace(merge, kind=PartKind.BLOCK, window=units, reach=reach))
        if attention != "none":
            inputs = as_word(settings, "attend") == "inputs"
            label = f"{attention} attention" + (" to inputs" if inputs else "")
            before = ("decoder", SOURCE_EMBEDDING if inputs else "encoder")
            score = _measured(label, found, ("body.decoder.alignment",), predecessors=before)
            parts.append(replace(score, kind=PartKind.BLOCK, reach=_FULL_REACH, state=2 * units))
        if recurrent and self.config.settings.dropout:
            parts.append(_measured("dropout", found, ("body.decoder.dropout",)))
        return tuple(parts)

    def _stack(
        self, label: str, node: Value, found: Numbers, *, units: int, causal: bool, module: str
    ) -> ModelPart:
        """Return an encoder or decoder of `seq2seq`: a recurrent block or residual stack."""
        total = _measured(label, found, (module,), kind=PartKind.STACK)
        walker = replace(self, config=configure(self.config, causal=causal))
        if is_recurrent(node):
            assert isinstance(node, BlockNode)
            spec, config = spec_of(node.name), configure(walker.config, d_model=units)
            settings, context = spec.settings(node), CostContext(config=config, length=self.length)
            state, window = spec.generation_state(settings, context)
            reach = spec.reach(settings, context)
            total = replace(total, reach=reach, state=state, window=window)
            return replace(total, parts=(replace(total, label=render(node), kind=PartKind.BLOCK),))
        layers = walker.layers(node, ((f"{module}.body", 0),))
        parts = list(layers.parts if isinstance(node, SeriesNode) else (layers,))
        positions = _measured("positions", found, (f"{module}.positions",))
        parts = [*((positions,) if positions.parameters else ()), *parts, *_shared(layers)]
        if causal:
            attention = _measured("attention to the source", found, (f"{module}.crossings",))
            parts.append(
                replace(
                    attention, kind=PartKind.BLOCK, reach=_FULL_REACH, state=2 * cross_attention_width(node)
                )
            )
        if self.config.settings.norm == "pre":
            parts.append(_measured("final norm", found, (f"{module}.norm",)))
        whole = series(label, tuple(parts))
        return replace(whole, kind=PartKind.STACK, flops=total.flops, modules=total.modules, shared={})

    def _frame(self, scored: int) -> Numbers:
        if self.wanted == "reach":
            return {}
        length, scored = (self.length, scored) if self.wanted == "flops" else (1, 1)
        return measure("frame", None, self.config, length=length, scored=scored)

    @cached_property
    def _norm_parameters(self) -> int:
        if self.config.settings.norm == "none" or self.wanted == "reach":
            return 0
        smallest = _smallest_config(self.config.settings.d_model, self.config.settings.norm_kind)
        return measure("frame", None, smallest, length=1, scored=1).get("parameters norm", 0)


@lru_cache(maxsize=64)
def _smallest_config(d_model: int, norm_kind: str) -> ModelConfig:
    """Return a config for the parameters of a norm: all models with this width and norm share it."""
    return configure(d_model=d_model, vocab=1, norm_kind=norm_kind)


def _count_layers(node: Value) -> int:
    match node:
        case SeriesNode():
            return sum(map(_count_layers, node.parts))
        case RepeatNode(count=int(count)):
            return min(count, _MOST_COPIES) * _count_layers(node.body)
        case TiedNode(body=RepeatNode(body=body)):
            return _count_layers(body)
        case _:
            return 1


def _framed(name: str, found: Numbers, modules: tuple[str, ...], *, label: str = "") -> ModelPart:
    return ModelPart(
        label=label or name,
        parameters=found.get(f"parameters {name}", 0),
        flops=found.get(f"flops {name}", 0),
        modules=modules,
    )


def _measured(
    label: str,
    found: Numbers,
    modules: tuple[str, ...],
    *,
    kind: PartKind = PartKind.FRAME,
    predecessors: tuple[str, ...] | None = None,
) -> ModelPart:
    def total(what: str) -> int:
        return sum(
            count
            for name, count in found.items()
            if name.startswith(f"{what} ") and _is_within(name.removeprefix(f"{what} "), modules)
        )

    return ModelPart(
        label=label,
        kind=kind,
        modules=modules,
        predecessors=predecessors,
        parameters=total("parameters"),
        flops=total("flops"),
    )


def _repeat(label: str, body: Node, one: ModelPart, count: int) -> ModelPart:
    """Return a repeated part; only the parameters are those of `one` copy, as if the copies were tied."""
    return replace(
        one,
        label=label,
        kind=PartKind.COPIES,
        flops=count * one.flops,
        reach=Reach(left=count * one.reach.left, right=count * one.reach.right),
        state=count * one.state,
        window=count * one.window,
        parts=one.parts if isinstance(body, SeriesNode) else (one,),
    )


def _shared(part: ModelPart) -> list[ModelPart]:
    return [
        ModelPart(label=key, kind=PartKind.SHARED, parameters=count) for key, count in part.shared.items()
    ]


def _without_state(part: ModelPart) -> ModelPart:
    """Return a part, such as an encoder, that caches nothing, because generation runs it only once."""
    return replace(part, state=0, window=0, parts=tuple(map(_without_state, part.parts)))


def _layer_names(places: _Places, count: int) -> tuple[str, ...]:
    return tuple(f"{name}.layers.{at + place}" for name, at in places for place in range(count))


def _is_within(name: str, modules: tuple[str, ...]) -> bool:
    return any(name == each or name.startswith((f"{each}.", f"{each}:")) for each in modules)


def _with_memory(part: ModelPart, kept: Mapping[str, int]) -> ModelPart:
    """Set the bytes that each part keeps, given the bytes of each module by its name."""
    parts = tuple(_with_memory(each, kept) for each in part.parts)
    if not part.modules:
        return replace(part, parts=parts, kept=sum(each.kept for each in parts))
    own = {name: count for name, count in kept.items() if _is_within(name, part.modules)}
    return replace(part, parts=parts, kept=round(part.share * sum(own.values())))


def _limited(node: Value) -> Value:
    if isinstance(node, RepeatNode) and isinstance(node.count, int):
        node = replace(node, count=min(node.count, _MOST_COPIES))
    return rebuild(node, [_limited(inner) for inner in children(node)]) if children(node) else node


def _check_resolved(recipe: Recipe) -> None:
    """Raise RecipeError at the first occurrence of each hole and open search dimension."""
    faults: dict[str, Fault] = {}
    for node in walk(recipe.root):
        if not isinstance(node, HoleNode | IntegerDimension | RealDimension | ChoiceDimension):
            continue
        text = render(node)
        start = recipe.text.index(text)
        what = (
            f"expected a recipe without holes: fill {{{node.name}}} first"
            if isinstance(node, HoleNode)
            else "expected a recipe without choices and ranges: write one value here"
        )
        faults.setdefault(text, Fault(start, start + len(text), what))
    if faults:
        raise RecipeError(recipe.text, faults.values())
