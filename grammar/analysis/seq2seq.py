"""`seq2seq`, the encoder-decoder of the vocabulary: a recipe reads the source, another writes the target.

All is counted for a source and a target as long as the context says. The masks of padding that training
keeps, a byte for each position, are left out but where a kernel makes numbers of them.
"""

from __future__ import annotations

from dataclasses import replace

from ..canonical import render
from ..nodes import (
    BlockNode,
    ChoiceDimension,
    HoleNode,
    IntegerDimension,
    RepeatNode,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
)
from ..norms import NORMS
from ..vocabulary.cost_tree import (
    PREVIOUS_PART,
    SOURCE_EMBEDDING,
    TARGET_EMBEDDING,
    ModelPart,
    PartKind,
    compose_stack,
    total_cost,
)
from ..vocabulary.output_kinds import SEQUENCE, mixes_positions, output_kind
from ..vocabulary.registry import register
from ..vocabulary.spec import (
    REQUIRED,
    UNBOUNDED,
    Cost,
    CostContext,
    Parameter,
    Reach,
    Role,
    Settings,
    Spec,
    as_bool,
    as_word,
)
from .analyse import analyse_stack
from .cross_attention import CrossAttentionShape, find_cross_attentions, is_recurrent
from .recurrent_decoder import (
    FED_CONTEXT,
    analyse_recurrent,
    attention_to_source,
    feed_context,
    recurrent_encoder,
    recurrent_layers,
    recurrent_units,
)

_FULL_REACH = Reach(left=UNBOUNDED, right=UNBOUNDED)
"""The reach of an attention: all of the source, which is never hidden."""

_MAX_KEPT_LENGTH = 64
"""Attention to at most so many positions keeps all of its weights, as `MAX_UNFUSED_LENGTH` of blocks."""

_KEYS_VALUES_LABEL = "keys and values"
"""What a decoder's stack attends to."""


def check_settings(settings: Settings) -> str | None:
    """What does not go together among the arguments; None if nothing, or where that is still open."""
    return (
        _check_outputs(settings)
        or _check_attention(settings)
        or _check_units(settings)
        or _check_connection(settings)
    )


def _check_outputs(settings: Settings) -> str | None:
    """Why one of the recipes cannot be an encoder or a decoder."""
    for name in ("encoder", "decoder"):
        gives = output_kind(settings[name])
        if gives not in (None, SEQUENCE):
            return f"the {name} must give a sequence, but {render(settings[name])} gives {gives}"
    return None


def _check_attention(settings: Settings) -> str | None:
    """Why the words that say what is attended to are not the right ones."""
    if settings["attend"] == "inputs" and settings["attention"] == "none":
        return "attend=inputs needs an attention, luong or bahdanau"
    if settings["attend"] == "outputs" and settings["positions"] != POSITIONS.default:
        return "positions stand behind attended inputs: they need attend=inputs"
    if settings["attention"] in ("luong", "bahdanau") and _is_stack(settings["decoder"]):
        attention = f"attention={settings['attention']}"
        return f"{attention} is for lstm or gru as the decoder; others attend behind every layer that mixes"
    if settings["feed"] is True and settings["attention"] == "none":
        return "feed=true feeds back what is attended to: it needs an attention, luong or bahdanau"
    return None


def _check_units(settings: Settings) -> str | None:
    """Why recurrent layers cannot be of another width than the model."""
    units = settings["units"]
    if units == 0:
        return None
    for name in ("encoder", "decoder"):
        if _is_stack(settings[name]):
            got = f"got {render(settings[name])} as the {name}"
            return f"units={render(units)} are those of lstm or gru in both, {got}"
    if settings["attend"] == "inputs":
        return "attended inputs are as wide as the model: units need attend=outputs"
    return None


def _check_connection(settings: Settings) -> str | None:
    """Why nothing passes from the encoder to the decoder, or would not with some of what may be chosen."""
    encoder, decoder = settings["encoder"], settings["decoder"]
    if isinstance(encoder, HoleNode | ChoiceDimension) or isinstance(decoder, HoleNode | ChoiceDimension):
        return None
    if not is_recurrent(decoder):
        return None if _always_mixes(decoder) else "a decoder attends where positions mix, and here none may"
    if is_recurrent(encoder):
        return _check_states(encoder, decoder)
    if settings["attention"] == "none":
        return "without attention nothing passes to the decoder: expected luong or bahdanau"
    return None


def _check_states(encoder: Value, decoder: Value) -> str | None:
    """Why a recurrent decoder cannot go on from the last state of a recurrent encoder."""
    (first, count), (last, other) = recurrent_layers(encoder), recurrent_layers(decoder)
    law = "the decoder goes on from the encoder's last state"
    if first == last and (count == other or isinstance(count, HoleNode) or isinstance(other, HoleNode)):
        searched = isinstance(count, IntegerDimension | ChoiceDimension)
        return f"{law}: for the same layers in both write one hole, as layers={{n}}" if searched else None
    return f"{law}: expected {render(encoder)}, got {render(decoder)}"


def _always_mixes(node: Value) -> bool:
    """Whether positions mix in the part whatever is chosen; in what fills a hole they may."""
    match node:
        case SeriesNode() | SumNode():
            return any(map(_always_mixes, node.parts))
        case ChoiceDimension():
            return all(map(_always_mixes, node.options))
        case RepeatNode() | TiedNode():
            return _always_mixes(node.body)
        case _:
            return isinstance(node, HoleNode) or mixes_positions(node)


def _is_stack(part: Value) -> bool:
    """Whether the part is known not to be a recurrent block."""
    return isinstance(part, BlockNode | SumNode | SeriesNode | RepeatNode | TiedNode) and not is_recurrent(
        part
    )


def _encoder(settings: Settings, context: CostContext) -> ModelPart:
    """What reads the source, to both sides; generation keeps nothing of it but what is attended to."""
    part, both = settings["encoder"], replace(context, config=replace(context.config, causal=False))
    parts = (recurrent_encoder(settings, both),) if is_recurrent(part) else analyse_stack(part, both)
    return _labelled_stack(
        "encoder", tuple(map(_without_cache, parts)), context, predecessors=(SOURCE_EMBEDDING,)
    )


def _decoder(settings: Settings, context: CostContext) -> ModelPart:
    """What writes the target, its input saved; a recurrent one begins in the last state of one like it."""
    part, past = settings["decoder"], replace(context, config=replace(context.config, causal=True))
    if is_recurrent(part):
        parts = (analyse_recurrent(settings, "decoder", past),)
    else:
        parts = analyse_stack(part, past, _cross_attention)
    carried = is_recurrent(part) and is_recurrent(settings["encoder"])
    read = FED_CONTEXT if settings["feed"] else TARGET_EMBEDDING
    predecessors = (read, "encoder") if carried else (read,)
    found = _labelled_stack("decoder", parts, context, predecessors)
    return found.with_saved_input(context.length * context.width)


def _labelled_stack(
    label: str, parts: tuple[ModelPart, ...], context: CostContext, predecessors: tuple[str, ...]
) -> ModelPart:
    """The parts under that name, which stands in the names of what they share."""
    found = compose_stack(label, parts, context.length * context.width, predecessors)
    return replace(found, shared={f"{label} {key}": count for key, count in found.shared.items()})


def _without_cache(part: ModelPart) -> ModelPart:
    """The part where it is not applied again in generation, so that nothing of it is kept."""
    return replace(part, state=0, window=0, parts=tuple(map(_without_cache, part.parts)))


def _source_keys_values(decoder: Value, context: CostContext) -> ModelPart:
    """The keys and values of the source for all that attends to it in a decoder, without biases.

    They are made once where weights are tied. What they are made of is saved once.
    """
    inner = sum(each.copies * each.width for each in find_cross_attentions(decoder))
    return ModelPart(
        label=_KEYS_VALUES_LABEL,
        kind=PartKind.BLOCK,
        parameters=2 * context.width * inner,
        flops=2 * context.length * 2 * context.width * inner,
        state=2 * inner,
        saved=context.length * (2 * inner + context.width),
        predecessors=("encoder",),
    )


def _cross_attention(sublayer: Value, context: CostContext) -> ModelPart:
    """The attention to the source behind a sub-layer in which positions mix, its input saved or beside it.

    Queries and the output are maps of the target without biases.
    """
    (each,), width, length = find_cross_attentions(sublayer), context.width, context.length
    norm, has_norm = NORMS[context.config.norm_kind], context.config.norm != "none"
    normed = has_norm * norm.saved(width)
    is_dropped = context.config.residual and context.config.dropout > 0
    planes = (1 + has_norm) * width * length + is_dropped * width * length
    found = ModelPart(
        label="attention to the source",
        kind=PartKind.BLOCK,
        parameters=2 * width * each.width + has_norm * norm.parameters(width),
        flops=2 * length * 2 * width * each.width + 2 * 2 * length**2 * each.width,
        reach=_FULL_REACH,
        saved=length * (2 * each.width + _saved_weights(each, context) + normed) + planes,
        predecessors=(PREVIOUS_PART, _KEYS_VALUES_LABEL),
    )
    return replace(found, saved=found.saved - length * width).checkpointed() if context.checkpoints else found


def _saved_weights(cross_attention: CrossAttentionShape, context: CostContext) -> int:
    """What is saved of the weights of an attention to the source, for each position of the target.

    As in `sa`; the fused kernel, which takes what is longer and on a GPU all, keeps a sum for each query, and
    the mask as numbers. What it gives is laid out as the last projection takes it.
    """
    if context.config.attention_dropout:
        return context.saved_weights(cross_attention.heads * context.length)
    if context.length <= _MAX_KEPT_LENGTH:
        return cross_attention.heads * context.length
    return cross_attention.heads + 1


def _cost(settings: Settings, context: CostContext) -> Cost:
    """The encoder in a bidirectional context, the decoder in a causal one, and what joins them.

    Dropout acts on what a recurrent decoder gives, beside what it attends to if it does.
    """
    encoder, decoder = _encoder(settings, context), _decoder(settings, context)
    if not is_recurrent(settings["decoder"]):
        return total_cost(
            (encoder, _source_keys_values(settings["decoder"], context), decoder), context.width
        )
    attends, units = as_word(settings, "attention") != "none", recurrent_units(settings, context.width)
    fed = (feed_context(settings, context),) if as_bool(settings, "feed") else ()
    parts = (encoder, *fed, decoder, *((attention_to_source(settings, context),) if attends else ()))
    outputs = 2 * units if attends else units
    dropped = ModelPart(label="dropout", parameters=0, flops=0, saved=context.length * outputs)
    return total_cost((*parts, dropped) if context.config.dropout else parts, outputs)


def _reach(_settings: Settings, context: CostContext) -> Reach:
    """All of the source, and all that has been written."""
    return Reach(left=UNBOUNDED, right=0 if context.causal else UNBOUNDED)


def _recipe(name: str, meaning: str) -> Parameter:
    return Parameter(name=name, kind="recipe", default=REQUIRED, positional=True, meaning=meaning)


POSITIONS = Parameter(
    name="positions",
    kind="integer",
    default=10,
    low=1,
    high=4096,
    meaning="width of the position vectors behind attended inputs",
)

SEQ2SEQ = register(
    Spec(
        name="seq2seq",
        role=Role.TRANSDUCER,
        parameters=(
            _recipe("encoder", "what reads the source"),
            _recipe("decoder", "what writes the target"),
            Parameter(
                name="attention",
                kind="word",
                default="none",
                words=("none", "luong", "bahdanau"),
                meaning="scores of a recurrent decoder",
            ),
            Parameter(
                name="attend",
                kind="word",
                default="outputs",
                words=("outputs", "inputs"),
                meaning="what is attended to: the encoder's outputs, or its inputs",
            ),
            POSITIONS,
            Parameter(
                name="feed",
                kind="boolean",
                default=False,
                meaning="whether what was attended to enters the decoder's next input",
            ),
            Parameter(
                name="units",
                kind="integer",
                default=0,
                low=0,
                high=65536,
                meaning="width of lstm or gru in both; 0: d_model, which stays that of the embeddings",
            ),
        ),
        summary="encoder and decoder",
        equation="y_t = [c_t ; h′_t] for lstm and gru, c_t = Σ softmax_i(score(s_i, h′_t)) m_i, "
        "with feed of the input W [x_t ; c_{t−1}] + b; "
        "else the decoder's stack, attending to the source behind each sub-layer that mixes",
        source="Sutskever, Vinyals and Le 2014; Luong et al. 2015; Bahdanau et al. 2015; Vaswani et al. 2017",
        cost=_cost,
        reach=_reach,
        check=check_settings,
    )
)
