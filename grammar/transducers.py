"""`seq2seq`, the encoder-decoder of the vocabulary: a recipe reads the source, another writes the target.

All is counted for a source and a target as long as the context says.
"""

from __future__ import annotations

from dataclasses import replace

from .analysis import analyse_block, analyse_within
from .attention import SHORT
from .crossing import Crossing, crossings, recurrent
from .nodes import Block, Choice, Hole, Integer, Repeat, Series, Sum, Tied, Value
from .parts import BEFORE, SOURCE, TARGET, Form, Part, all_of, stack
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
    register,
    whole,
    word,
)

_EVERYWHERE = Reach(left=ALL, right=ALL)
"""The reach of an attention: all of the source, which is never hidden."""

_KNOWN = "keys and values"
"""What a decoder's stack attends to."""


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


def _encoder(settings: Settings, context: Context) -> Part:
    """What reads the source, to both sides; generation keeps nothing of it but what is attended to."""
    part, both = settings["encoder"], replace(context, causal=False)
    parts = _recurrence(part, both) or analyse_within(part, both)
    return _named("encoder", tuple(map(_read_once, parts)), context, follows=(SOURCE,))


def _decoder(settings: Settings, context: Context) -> Part:
    """What writes the target, its input saved; a recurrent one begins in the last state of one like it."""
    part, past = settings["decoder"], replace(context, causal=True)
    parts = _recurrence(part, past) or analyse_within(part, past, _crossing)
    carried = recurrent(part) and recurrent(settings["encoder"])
    found = _named("decoder", parts, context, follows=(TARGET, "encoder") if carried else (TARGET,))
    return found.with_input(context.length * context.width)


def _recurrence(part: Value, context: Context) -> tuple[Part, ...]:
    """A recurrent block as it is; nothing for another recipe, which is a residual stack."""
    return (analyse_block(part, context),) if isinstance(part, Block) and recurrent(part) else ()


def _named(label: str, parts: tuple[Part, ...], context: Context, follows: tuple[str, ...]) -> Part:
    """The parts under that name, which stands in the names of what they share."""
    found = stack(label, parts, context.length * context.width, follows)
    return replace(found, shared={f"{label} {key}": count for key, count in found.shared.items()})


def _read_once(part: Part) -> Part:
    """The part where it is not applied again in generation, so that nothing of it is kept."""
    return replace(part, state=0, window=0, parts=tuple(map(_read_once, part.parts)))


def _known(decoder: Value, context: Context) -> Part:
    """The keys and values of the source for all that attends to it in a decoder, without biases.

    They are made once where weights are tied. What they are made of is saved once.
    """
    inner = sum(each.copies * each.width for each in crossings(decoder))
    return Part(
        label=_KNOWN,
        form=Form.BLOCK,
        parameters=2 * context.width * inner,
        flops=2 * context.length * 2 * context.width * inner,
        state=2 * inner,
        saved=context.length * (2 * inner + context.width),
        follows=("encoder",),
    )


def _crossing(sublayer: Value, context: Context) -> Part:
    """The attention to the source behind a sub-layer in which positions mix, its input saved.

    Queries and the output are maps of the target without biases.
    """
    (each,), width, length = crossings(sublayer), context.width, context.length
    normed = context.norm != "none"
    planes = 1 + normed + (context.residual and context.dropout > 0)
    return Part(
        label="attention to the source",
        form=Form.BLOCK,
        parameters=2 * width * each.width + normed * 2 * width,
        flops=2 * length * 2 * width * each.width + 2 * 2 * length**2 * each.width,
        reach=_EVERYWHERE,
        saved=length * (2 * each.width + _weights(each, context) + planes * width + normed * 2),
        follows=(BEFORE, _KNOWN),
    )


def _weights(crossing: Crossing, context: Context) -> int:
    """What is saved of the weights of an attention to the source, for each position of the target.

    As in `sa`: the fused kernel, which takes what is longer, keeps a sum for each query, and its output.
    """
    if context.attention_dropout:
        return 3 * crossing.heads * context.length
    if context.length <= SHORT:
        return crossing.heads * context.length
    return crossing.heads * (1 + crossing.head_width * (crossing.heads > 1))


def _attention(settings: Settings, context: Context) -> Part:
    """The attention of a recurrent decoder: keys of what is attended to, scores of pairs, means."""
    kind, width, length = word(settings, "attention"), context.width, context.length
    attended = word(settings, "attend")
    inner = width + (whole(settings, "positions") if attended == "inputs" else 0)
    keys, pairs = 2 * length * inner * width, 2 * length**2 * width
    weights = (3 if context.attention_dropout else 1) * length**2
    part = Part(
        label=f"{kind} attention" + (" to inputs" if attended == "inputs" else ""),
        form=Form.BLOCK,
        parameters=inner * width,
        flops=keys + 2 * pairs,
        reach=_EVERYWHERE,
        state=2 * width,
        saved=weights + length * (3 * width + inner),
        follows=("decoder", SOURCE if attended == "inputs" else "encoder"),
    )
    if kind == "luong":
        return part
    return replace(
        part,
        parameters=part.parameters + width**2 + width,
        flops=part.flops + 2 * length * width**2,
        saved=weights + length**2 * width + length * (2 * width + inner),
    )


def _cost(settings: Settings, context: Context) -> Cost:
    """The encoder in a bidirectional context, the decoder in a causal one, and what joins them.

    Dropout acts on what a recurrent decoder gives, beside what it attends to if it does.
    """
    encoder, decoder = _encoder(settings, context), _decoder(settings, context)
    if not recurrent(settings["decoder"]):
        return all_of((encoder, _known(settings["decoder"], context), decoder), context.width)
    attends = word(settings, "attention") != "none"
    parts = (encoder, decoder, *((_attention(settings, context),) if attends else ()))
    outputs = 2 * context.width if attends else context.width
    dropped = Part(label="dropout", parameters=0, flops=0, saved=context.length * outputs)
    return all_of((*parts, dropped) if context.dropout else parts, outputs)


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
