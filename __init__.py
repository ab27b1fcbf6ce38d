"""Architecture search and ablation studies of sequence models: attention against active memory.

What is named here is loaded when it is first asked for, so that `import activemem` costs nothing:

    from activemem import build, ff, highway_conv, sa
    model = build(4 * (sa + highway_conv(k=20) >> ff(512)), d_model=128, vocab=20)

Every block of this package is a name here, too; those of other packages are `block("name")`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .blocks import build as build
    from .errors import ActivememError as ActivememError
    from .grammar import Budget as Budget
    from .grammar import Recipe as Recipe
    from .grammar import RecipeError as RecipeError
    from .grammar import Space as Space
    from .grammar import analyse as analyse
    from .grammar import parse as parse
    from .grammar.block_names import *  # noqa: F403 -- every block under its name
    from .grammar.expressions import block as block
    from .grammar.expressions import choice as choice
    from .grammar.expressions import hole as hole
    from .grammar.expressions import integer as integer
    from .grammar.expressions import real as real
    from .grammar.expressions import tied as tied
    from .reporting.results import open_study as open_study

__version__ = "0.1.0"

EXPORTS = {
    "ActivememError": ".errors",
    "Budget": ".grammar",
    "Recipe": ".grammar",
    "RecipeError": ".grammar",
    "Space": ".grammar",
    "analyse": ".grammar",
    "block": ".grammar.expressions",
    "build": ".blocks",
    "choice": ".grammar.expressions",
    "hole": ".grammar.expressions",
    "integer": ".grammar.expressions",
    "open_study": ".reporting.results",
    "parse": ".grammar",
    "real": ".grammar.expressions",
    "tied": ".grammar.expressions",
}
"""The names of the package that are no blocks, and where each of them is."""


if not TYPE_CHECKING:  # so that a name which is not there is told in the editor, too

    def __getattr__(name: str) -> object:
        """What is named, loaded now; AttributeError if it is neither among EXPORTS nor a block."""
        if name.startswith("_"):
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        value = getattr(import_module(EXPORTS.get(name, ".grammar.block_names"), __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Everything that can be named."""
    block_names = import_module(".grammar.block_names", __name__)
    return sorted({*globals(), *EXPORTS, *dir(block_names)})
