"""Every block of this package under its own name, ready to be used in an expression.

What an editor shows of them, types and defaults, is in `block_names.pyi`, which is written from the
vocabulary by `python tests/grammar/test_block_names.py`. Blocks of other packages: `block("name")`.
"""

from __future__ import annotations

from .expressions import BlockFactory, BlockRecipe, block
from .vocabulary.spec import builtin_names, nearest_block


def __getattr__(name: str) -> BlockFactory | BlockRecipe:
    """Return the block of that name; raises AttributeError, with the nearest name, for an unknown one."""
    if name not in builtin_names():
        near = nearest_block(name)
        said = f"; nearest: {near}" if near else ""
        raise AttributeError(f"activemem has no block '{name}'{said}")
    return block(name)


def __dir__() -> list[str]:
    """Return the names of the blocks."""
    return list(builtin_names())
