"""Every block of this package under its own name, ready to be used in an expression.

What an editor shows of them, types and defaults, is in `named.pyi`, which is written from the vocabulary by
`python tests/grammar/test_named.py`. Blocks of other packages: `block("name")`.
"""

from __future__ import annotations

from .expressions import BlockName, BlockRecipe, block
from .faults import hint
from .vocabulary import own_names


def __getattr__(name: str) -> BlockName | BlockRecipe:
    """The block of that name; AttributeError, with the nearest, if this package has none."""
    if name not in own_names():
        raise AttributeError(f"activemem has no block '{name}'{hint(name, own_names())}")
    return block(name)


def __dir__() -> list[str]:
    """The names of the blocks."""
    return list(own_names())
