"""The block `seq2seq`: one recipe encodes the source, and another one decodes the target."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .canonical import render
from .nodes import (
    BlockNode,
    ChoiceDimension,
    HoleNode,
    IntegerDimension,
    RepeatNode,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
    walk,
)
from .vocabulary.recurrent import RECURRENT
from .vocabulary.spec import (
    REQUIRED,
    SEQUENCE,
    Parameter,
    Role,
    Settings,
    Spec,
    as_int,
    boolean,
    define,
    integer,
    lookup,
    mixes_positions,
    output_kind,
    sees_everything,
    word,
)

DEFAULT_HEADS, DEFAULT_HEAD_WIDTH = 8, 64
"""The number and the width of the heads of a cross-attention after a sub-layer that has no heads."""


def is_recurrent(part: Value) -> bool:
    """Return whether a part of a `seq2seq` is a single recurrent block.

    The last state of a recurrent encoder can start a recurrent decoder.
    """
    return isinstance(part, BlockNode) and part.name in RECURRENT


def recurrent_units(settings: Settings, width: int) -> int:
    """Return the state width of a recurrent encoder or decoder: `units` or, if 0, the model's width."""
    return as_int(settings, "units") or width


def cross_attention_heads(node: Value) -> tuple[int, int]:
    """Return the number and the width of the heads of the cross-attention after the sub-layer `node`."""
    for block in walk(node):
        spec = lookup(block.name) if isinstance(block, BlockNode) else None
        if spec is None or not isinstance(block, BlockNode):
            continue
        settings = spec.settings(block)
        if "heads" in settings and "head_width" in settings:
            return as_int(settings, "heads"), as_int(settings, "head_width")
    return DEFAULT_HEADS, DEFAULT_HEAD_WIDTH


def mixing_sublayers(node: Value) -> list[Value]:
    """Return the sub-layers of a stack that mix positions, in order; tied copies count as one.

    In a decoder, a cross-attention follows each of them.
    """
    match node:
        case SeriesNode():
            return [found for part in node.parts for found in mixing_sublayers(part)]
        case RepeatNode(count=int(count)):
            return mixing_sublayers(node.body) * count
        case TiedNode():
            return mixing_sublayers(node.body.body)
        case _:
            return [node] if mixes_positions(node) else []


def cross_attention_width(node: Value) -> int:
    """Return the total width of the heads of all cross-attentions in a decoder's stack."""
    return sum(math.prod(cross_attention_heads(each)) for each in mixing_sublayers(node))


def _faults(settings: Settings) -> Iterator[str]:
    both = ("encoder", "decoder")
    attention, units = settings["attention"], settings["units"]
    for name in both:
        gives = output_kind(settings[name])
        if gives not in (None, SEQUENCE):
            yield f"the {name} must return a sequence, but {render(settings[name])} returns {gives}"
    if settings["attend"] == "inputs" and attention == "none":
        yield "attend=inputs needs attention=luong or attention=bahdanau"
    if settings["attend"] == "outputs" and settings["positions"] != _POSITIONS.default:
        yield "positions needs attend=inputs: positions are appended only to attended inputs"
    if attention in ("luong", "bahdanau") and _is_stack(settings["decoder"]):
        law = "needs lstm or gru as the decoder; for other decoders, remove the argument attention"
        yield f"attention={attention} {law}"
    if settings["feed"] is True and attention == "none":
        yield "feed=true feeds back the context of an attention: add attention=luong or attention=bahdanau"
    if units != 0:
        for name in both:
            if _is_stack(settings[name]):
                got = f"got {render(settings[name])} as the {name}"
                yield f"units={render(units)} needs lstm or gru as encoder and decoder, {got}"
        if settings["attend"] == "inputs":
            yield "units needs attend=outputs: attended inputs have the model's width"
    if (fault := _check_connection(settings)) is not None:
        yield fault


def _check_connection(settings: Settings) -> str | None:
    encoder, decoder = settings["encoder"], settings["decoder"]
    if isinstance(encoder, HoleNode | ChoiceDimension) or isinstance(decoder, HoleNode | ChoiceDimension):
        return None
    if not is_recurrent(decoder):
        return (
            None
            if _always_mixes(decoder)
            else "expected a decoder with a mixer, such as sa, because it attends after each mixer"
        )
    if is_recurrent(encoder):
        return _check_states(encoder, decoder)
    if settings["attention"] == "none":
        return "this encoder passes nothing to the decoder without attention: add attention=luong or bahdanau"
    return None


def _check_states(encoder: Value, decoder: Value) -> str | None:
    (first, count), (last, other) = _recurrent_layers(encoder), _recurrent_layers(decoder)
    law = "the decoder starts from the encoder's final state"
    if first == last and (count == other or isinstance(count, HoleNode) or isinstance(other, HoleNode)):
        searched = isinstance(count, IntegerDimension | ChoiceDimension)
        return f"{law}: write one hole for the layers of both, such as layers={{n}}" if searched else None
    return f"{law}: expected {render(encoder)}, got {render(decoder)}"


def _always_mixes(node: Value) -> bool:
    """Return whether a part mixes positions, whatever its choices take; a hole counts as mixing."""
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
    return isinstance(part, BlockNode | SumNode | SeriesNode | RepeatNode | TiedNode) and not is_recurrent(
        part
    )


def _recurrent_layers(block: Value) -> tuple[str, Value]:
    assert isinstance(block, BlockNode)
    return block.name, dict(block.arguments).get("layers", 1)


_POSITIONS = integer("positions", "width of the position vectors appended to attended inputs", (1, 4096), 10)


def _recipe(name: str, meaning: str) -> Parameter:
    return Parameter(name=name, kind="recipe", default=REQUIRED, positional=True, meaning=meaning)


define(
    Spec(
        name="seq2seq",
        role=Role.TRANSDUCER,
        parameters=(
            _recipe("encoder", "encoder of the source"),
            _recipe("decoder", "decoder of the target"),
            word("attention", "attention scores of a recurrent decoder", ("none", "luong", "bahdanau")),
            word(
                "attend",
                "attended vectors: the encoder's outputs or inputs",
                ("outputs", "inputs"),
            ),
            _POSITIONS,
            boolean("feed", "input feeding: whether the context enters the decoder's next input"),
            integer(
                "units",
                "state width of lstm or gru in encoder and decoder; 0: d_model",
                (0, 65536),
                0,
            ),
        ),
        summary="encoder and decoder",
        equation="y_t = [c_t ; h′_t] for lstm and gru, c_t = Σ softmax_i(score(s_i, h′_t)) m_i, "
        "with feed of the input W [x_t ; c_{t−1}] + b; "
        "else the decoder's stack, attending to the source after each sub-layer that mixes",
        source="Sutskever, Vinyals and Le 2014; Luong et al. 2015; Bahdanau et al. 2015; Vaswani et al. 2017",
        reach=sees_everything,
        check=lambda settings: next(_faults(settings), None),
    )
)
