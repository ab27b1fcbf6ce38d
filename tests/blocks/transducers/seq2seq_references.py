"""Reference implementation of encoder-decoders: loops over positions, one pair of sequences at a time.

Stacks are pre-norm, with residuals and without timing, as the conformance suite builds them.
"""

import math

import torch

from activemem.blocks.testing.references import apply_reference, register_reference
from activemem.grammar.canonical import identity
from activemem.grammar.nodes import BlockNode, RepeatNode, SeriesNode, SumNode, TiedNode

from ..equations.common import gru_layer, lstm_layer, norm, timing


def layered(block, x, starts):
    """Return the outputs of recurrent layers with initial states, and each layer's final state."""
    lasts = []
    for layer, start in zip(block.layers, starts, strict=True):
        steps = (lstm_layer if len(start) == 2 else gru_layer)(layer, x, *start)
        x = steps[0]
        lasts.append([part[-1] for part in steps[: len(start)]])
    return x, lasts


def attended(alignment, h, values, positions):
    """Return the attention weights of one state (width,) over values (n, width), and the context."""
    keys = alignment.keys.weight
    signal = timing(len(values), positions) if positions else torch.zeros(len(values), 0)
    known = [keys @ torch.cat([value, place]) for value, place in zip(values, signal, strict=True)]
    if hasattr(alignment, "vector"):
        query = alignment.queries.weight @ h
        scores = [alignment.vector.weight[0] @ torch.tanh(key + query) for key in known]
    else:
        scores = [key @ h for key in known]
    weights = torch.exp(torch.stack(scores))
    weights = weights / weights.sum()
    return weights, sum(weight * value for weight, value in zip(weights, values, strict=True))


def crossed(layer, x, known):
    """Return residual pre-norm cross-attention of x (m, width) to known (n, width), by position and head."""
    y = norm(layer.norm, x)
    keys, values = layer.keys_values.weight.chunk(2)
    heads = [w.unflatten(0, (layer.heads, -1)) for w in (layer.queries.weight, keys, values)]
    rows = []
    for row in y:
        joined = []
        for wq, wk, wv in zip(*heads, strict=True):
            scores = torch.stack([(wq @ row) @ (wk @ one) for one in known]) / math.sqrt(len(wq))
            weights = torch.exp(scores) / torch.exp(scores).sum()
            joined.append(sum(weight * (wv @ one) for weight, one in zip(weights, known, strict=True)))
        rows.append(layer.output.weight @ torch.cat(joined))
    return x + torch.stack(rows)


def unrolled(node):
    """Return the sub-layers of a stack in order, with repeats expanded."""
    match node:
        case SeriesNode():
            return [sublayer for part in node.parts for sublayer in unrolled(part)]
        case RepeatNode():
            return unrolled(node.body) * node.count
        case TiedNode():
            return unrolled(node.body)
        case _:
            return [node]


def apply_part(module, node, x, *, causal):
    """Return a sub-layer's output for its normalised input."""
    match node:
        case BlockNode():
            return apply_reference(node, module, x, causal=causal)
        case SumNode():
            parts = zip(module.parts, sorted(node.parts, key=identity), strict=True)
            return sum(apply_part(part, one, x, causal=causal) for part, one in parts)
        case _:
            return apply_stack(module, node, x, causal=causal)


def apply_stack(module, node, x, *, causal, attend=lambda _place, x: x):
    """Return a residual stack's output; `attend` runs after each sub-layer, with its index."""
    for place, sublayer in zip(module.order, unrolled(node), strict=True):
        layer = module.layers[place]
        x = x + apply_part(layer.part, sublayer, norm(layer.norm, x), causal=causal)
        x = attend(place, x)
    return x


def encode(module, node, source):
    """Return the encoding of a source (n, width), and each layer's final state if recurrent."""
    if not hasattr(module, "layer_class"):
        return norm(module.norm, apply_stack(module.body, node, source, causal=False)), None
    return layered(module, source, first_states(module))


def first_states(block):
    nothing = block.layers[0].bias.new_zeros(block.width)
    return [[nothing] * block.layer_class.state_count for _ in block.layers]


def fed(decoder, target, states, values, positions):
    """Return the outputs of a decoder with input feeding."""
    context, rows = torch.zeros_like(states[0][0]), []
    for x in target:
        joined = decoder.merge.weight @ torch.cat([x, context]) + decoder.merge.bias
        hidden, states = layered(decoder.block, joined[None], states)
        context = attended(decoder.alignment, hidden[0], values, positions)[1]
        rows.append(torch.cat([context, hidden[0]]))
    return torch.stack(rows)


@register_reference("seq2seq")
def seq2seq(model, source, target, *, encoder, decoder, attention, attend, positions, feed, **_):
    outputs, states = encode(model.encoder, encoder, source)
    if not hasattr(model.decoder, "block"):
        crossings = model.decoder.crossings

        def cross(place, x):
            return crossed(crossings[place], x, outputs) if hasattr(crossings[place], "queries") else x

        y = apply_stack(model.decoder.body, decoder, target, causal=True, attend=cross)
        return norm(model.decoder.norm, y)
    begin = states or first_states(model.decoder.block)
    values, width = (source, positions) if attend == "inputs" else (outputs, 0)
    if feed:
        return fed(model.decoder, target, begin, values, width)
    hidden, _ = layered(model.decoder.block, target, begin)
    if attention == "none":
        return hidden
    means = [attended(model.decoder.alignment, h, values, width)[1] for h in hidden]
    return torch.cat([torch.stack(means), hidden], 1)
