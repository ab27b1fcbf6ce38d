"""All blocks of the vocabulary for one sequence, with small arguments."""

from activemem.grammar import Role, lookup
from activemem.grammar.nodes import BlockNode
from activemem.grammar.vocabulary.spec import REQUIRED, builtin_names

SEQUENCE_BLOCKS = [name for name in builtin_names() if lookup(name).role in (Role.MIXER, Role.CHANNEL)]
BLOCKS = [name for name in builtin_names() if lookup(name).role is not Role.TRANSDUCER]


def example_block(name):
    """Return the block with small numbers: 4 for required parameters, 2 for optional integers."""
    spec, arguments = lookup(name), []
    for parameter in spec.parameters:
        if parameter.kind == "integer":
            small = 4 if parameter.default is REQUIRED else 2
            number = (parameter.name, int(min(max(small, parameter.low), parameter.high)))
            if parameter.default is REQUIRED or _allows(spec, (*arguments, number)):
                arguments.append(number)
        elif parameter.default is REQUIRED:
            assert parameter.words, f"no example for parameter '{parameter.name}' of {name}: add one here"
            arguments.append((parameter.name, parameter.words[0]))
    return BlockNode(name, tuple(arguments))


def _allows(spec, arguments):
    """Return whether parameters accept these values together with the defaults of others."""
    return spec.check is None or spec.check(spec.settings(BlockNode(spec.name, arguments))) is None
