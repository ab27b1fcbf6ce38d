"""The built-in blocks as Python objects.

They are joined into recipes, as in `4 * (sa >> ff(512))`. Editors read types and defaults from
`block_names.pyi`, which `python tests/grammar/test_block_names.py` writes from the vocabulary. Blocks of
other packages: `block("name")`.
"""

from __future__ import annotations

from .expressions import BlockFactory, BlockRecipe, block
from .vocabulary.spec import builtin_names, nearest_block


def __getattr__(name: str) -> BlockFactory | BlockRecipe:
    """Return the block with this name; raise AttributeError with the most similar name if there is none."""
    if name not in builtin_names():
        near = nearest_block(name)
        said = f"; nearest: {near}" if near else ""
        raise AttributeError(f"activemem has no block '{name}'{said}")
    return block(name)


def __dir__() -> list[str]:
    return list(builtin_names())
