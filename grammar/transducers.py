"""`seq2seq`, the encoder-decoder of the vocabulary: a recipe reads the source, another writes the target.

All is counted for a source and a target as long as the context says.
"""

from __future__ import annotations

from dataclasses import replace

from .analysis import analyse_part
from .attention import SHORT
from .crossing import Crossing, crossings, recurrent
from .nodes import Block, Choice, Hole, Integer, Repeat, Series, Sum, Tied, Value
from .roles import SEQUENCE, mixes, output
from .text import render
from .vocabulary import (
    ALL,
    REQUIRED,
    Context,
    Cost,
    Parameter,
    Reach,
    Role,
    Settings,
    Spec,
    lookup,
    register,
    whole,
    word,
)


def check(settings: Settings) -> str | None:
    """What does not go together among the arguments; None if nothing, or where that is still open."""
    return _check_outputs(settings) or _check_words(settings) or _check_passage(settings)


def _check_outputs(settings: Settings) -> str | None:
    """Why one of the recipes cannot be an encoder or a decoder."""
    for name in ("encoder", "decoder"):
        gives = output(settings[name])
        if gives not in (None, SEQUENCE):
            return f"the {name} must give a sequence, but {render(settings[name])} gives {gives}"
    return None


def _check_words(settings: Settings) -> str | None:
    """Why the words that say what is attended to are not the right ones."""
    if settings["attend"] == "inputs" and settings["attention"] == "none":
        return "attend=inputs needs an attention, luong or bahdanau"
    if settings["attend"] == "outputs" and settings["positions"] != POSITIONS.default:
        return "positions stand behind attended inputs: they need attend=inputs"
    if settings["attention"] in ("luong", "bahdanau") and _stacked(settings["decoder"]):
        attention = f"attention={settings['attention']}"
        return f"{attention} is for lstm or gru as the decoder; others attend behind every layer that mixes"
    return None


def _check_passage(settings: Settings) -> str | None:
    """Why nothing passes from the encoder to the decoder, or would not with some of what may be chosen."""
    encoder, decoder = settings["encoder"], settings["decoder"]
    if isinstance(encoder, Hole | Choice) or isinstance(decoder, Hole | Choice):
        return None
    if not recurrent(decoder):
        return None if _mixes(decoder) else "a decoder attends where positions mix, and here none may"
    if recurrent(encoder):
        return _check_states(encoder, decoder)
    if settings["attention"] == "none":
        return "without attention nothing passes to the decoder: expected luong or bahdanau"
    return None


def _check_states(encoder: Value, decoder: Value) -> str | None:
    """Why a recurrent decoder cannot go on from the last state of a recurrent encoder."""
    (first, count), (last, other) = _carried(encoder), _carried(decoder)
    law = "the decoder goes on from the encoder's last state"
    if first == last and (count == other or isinstance(count, Hole) or isinstance(other, Hole)):
        searched = isinstance(count, Integer | Choice)
        return f"{law}: for the same layers in both write one hole, as layers={{n}}" if searched else None
    return f"{law}: expected {render(encoder)}, got {render(decoder)}"


def _carried(block: Value) -> tuple[str, Value]:
    """What a recurrent block is, and how many layers it has."""
    assert isinstance(block, Block)
    return block.name, dict(block.arguments).get("layers", 1)


def _mixes(node: Value) -> bool:
    """Whether positions mix in the part whatever is chosen; in what fills a hole they may."""
    match node:
        case Series() | Sum():
            return any(map(_mixes, node.parts))
        case Choice():
            return all(map(_mixes, node.options))
        case Repeat() | Tied():
            return _mixes(node.body)
        case _:
            return isinstance(node, Hole) or mixes(node)


def _stacked(part: Value) -> bool:
    """Whether the part is known not to be a recurrent block."""
    return isinstance(part, Block | Sum | Series | Repeat | Tied) and not recurrent(part)


def _part(part: Value, context: Context) -> Cost:
    """A recurrent block as it is, or a residual stack with its last normalisation, if there is one."""
    if isinstance(part, Block) and recurrent(part):
        spec = lookup(part.name)
        assert spec is not None, f"{part.name} has left the vocabulary"
        return spec.cost(spec.settings(part), context)
    found, plane = analyse_part(part, context), context.length * context.width
    last = context.norm == "pre"
    return Cost(
        parameters=found.parameters + last * 2 * context.width,
        flops=found.flops,
        shared=found.shared,
        state=found.state,
        window=found.window,
        saved=found.saved + last * (plane + 2 * context.length),
        saved_once=found.saved_once,
        saves_input=found.saves_input,
    )


def _crossed(part: Value, context: Context) -> Cost:
    """The attention to the source behind all sub-layers of a decoder in which positions mix.

    Queries and the output are maps of the target, keys and values of the source, without biases; where
    weights are tied, keys and values are made once.
    """
    width, length = context.width, context.length
    parameters = flops = state = saved = 0
    normed = context.norm != "none"
    for each in crossings(part):
        inner = each.heads * each.head_width
        parameters += each.copies * (4 * width * inner + normed * 2 * width)
        flops += each.copies * 2 * length * 2 * width * inner  # keys and values
        flops += each.applied * (2 * length * 2 * width * inner + 2 * 2 * length**2 * inner)
        state += each.copies * 2 * inner
        planes = 1 + normed + (context.residual and context.dropout > 0)
        kept = 2 * inner + _weights(each, context) + planes * width + normed * 2
        saved += length * (each.copies * 2 * inner + each.applied * kept)
    return Cost(parameters=parameters, flops=flops, state=state, saved=saved + length * width)


def _weights(crossing: Crossing, context: Context) -> int:
    """What is saved of the weights of an attention to the source, for each position of the target.

    As in `sa`: the fused kernel, which takes what is longer, keeps a sum for each query, and its output.
    """
    if context.attention_dropout:
        return 3 * crossing.heads * context.length
    if context.length <= SHORT:
        return crossing.heads * context.length
    return crossing.heads * (1 + crossing.head_width * (crossing.heads > 1))


def _attention(settings: Settings, context: Context) -> Cost:
    """The attention of a recurrent decoder: keys of what is attended to, scores of pairs, means."""
    kind, width, length = word(settings, "attention"), context.width, context.length
    if kind == "none":
        return Cost(parameters=0, flops=0)
    inner = width + (whole(settings, "positions") if word(settings, "attend") == "inputs" else 0)
    keys = 2 * length * inner * width
    pairs = 2 * length**2 * width
    weights = (3 if context.attention_dropout else 1) * length**2
    if kind == "luong":
        kept = weights + length * (3 * width + inner)
        return Cost(parameters=inner * width, flops=keys + 2 * pairs, state=2 * width, saved=kept)
    return Cost(
        parameters=inner * width + width**2 + width,
        flops=keys + 2 * length * width**2 + 2 * pairs,
        state=2 * width,
        saved=weights + length**2 * width + length * (2 * width + inner),
    )


def _cost(settings: Settings, context: Context) -> Cost:
    """The encoder in a bidirectional context, the decoder in a causal one, and what joins them."""
    encoder = _part(settings["encoder"], replace(context, causal=False))
    decoder = _part(settings["decoder"], replace(context, causal=True))
    wide = recurrent(settings["decoder"])
    joint = _attention(settings, context) if wide else _crossed(settings["decoder"], context)
    outputs = 2 * context.width if wide and word(settings, "attention") != "none" else context.width
    dropped = outputs if wide and context.dropout else 0
    between = context.length * (dropped + decoder.saves_input * context.width)
    return Cost(
        parameters=encoder.parameters + decoder.parameters + joint.parameters,
        flops=encoder.flops + decoder.flops + joint.flops,
        shared={
            **{f"encoder {key}": count for key, count in encoder.shared.items()},
            **{f"decoder {key}": count for key, count in decoder.shared.items()},
        },
        state=decoder.state + joint.state,
        window=decoder.window,
        saved=encoder.saved + decoder.saved + joint.saved + between,
        saved_once=encoder.saved_once + decoder.saved_once,
        saves_input=encoder.saves_input,
        outputs=outputs,
    )


def _reach(_settings: Settings, context: Context) -> Reach:
    """All of the source, and all that has been written."""
    return Reach(left=ALL, right=0 if context.causal else ALL)


def _recipe(name: str, meaning: str) -> Parameter:
    return Parameter(name=name, kind="recipe", default=REQUIRED, bare=True, meaning=meaning)


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
        ),
        summary="encoder and decoder",
        equation="y_t = [c_t ; h′_t] for lstm and gru, c_t = Σ softmax_i(score(s_i, h′_t)) m_i; "
        "else the decoder's stack, attending to the source behind each sub-layer that mixes",
        source="Sutskever, Vinyals and Le 2014; Luong et al. 2015; Bahdanau et al. 2015; Vaswani et al. 2017",
        cost=_cost,
        reach=_reach,
        check=check,
    )
)
