"""How tests make blocks: small arguments derived from the vocabulary, weights in double precision."""

import torch

from activemem.blocks import Context, build_block
from activemem.blocks.initial import initialise
from activemem.grammar import Role, lookup, names
from activemem.grammar.nodes import Block
from activemem.grammar.vocabulary import REQUIRED

WIDTH = 6

SEQUENCE_BLOCKS = [name for name in names() if lookup(name).role in (Role.MIXER, Role.CHANNEL)]


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def example(name):
    """The block with small numbers: 4 for what must be given, 2 for integers that have a default."""
    arguments = []
    for parameter in lookup(name).parameters:
        if parameter.kind == "integer":
            small = 4 if parameter.default is REQUIRED else 2
            arguments.append((parameter.name, int(min(max(small, parameter.low), parameter.high))))
        elif parameter.default is REQUIRED:
            assert parameter.words, f"no example for parameter '{parameter.name}' of {name}: add one here"
            arguments.append((parameter.name, parameter.words[0]))
    return Block(name, tuple(arguments))


def context(*, causal, width=WIDTH, dropout=0.0):
    return Context(width=width, causal=causal, dropout=dropout)


def made(node, *, causal, seed=0, width=WIDTH, dropout=0.0, dtype=torch.float64):
    """A block with drawn weights; biases are drawn too, so that none is zero."""
    block = build_block(node, context(causal=causal, width=width, dropout=dropout))
    generator = seeded(seed)
    initialise(block, generator)
    with torch.no_grad():
        for name, parameter in block.named_parameters():
            if name.endswith("bias"):
                parameter.uniform_(-0.5, 0.5, generator=generator)
    return block.to(dtype).eval()


def sequences(batch, length, *, width=WIDTH, seed=1, dtype=torch.float64):
    return torch.randn(batch, length, width, generator=seeded(seed), dtype=dtype)


def prefix_mask(lengths, length):
    return torch.arange(length) < torch.tensor(lengths)[:, None]
