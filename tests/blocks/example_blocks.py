"""Names of the blocks of the vocabulary."""

from activemem.grammar import Role, lookup
from activemem.grammar.vocabulary.spec import builtin_names

SEQUENCE_BLOCKS = [name for name in builtin_names() if lookup(name).role in (Role.MIXER, Role.CHANNEL)]
BLOCKS = [name for name in builtin_names() if lookup(name).role is not Role.TRANSDUCER]
