"""Architecture search and ablation studies of sequence models: attention against active memory.

    from activemem import build, ff, highway_conv, sa
    model = build(4 * (sa + highway_conv(k=20) >> ff(512)), d_model=128, vocab=20)

What is promised is listed in `__init__.pyi` and loaded when it is first asked for, so that `import
activemem` costs nothing. Every block of this package is a name here, too; those of other packages are
`block("name")`.

`grammar` is the recipe language, `blocks` its modules in torch, `studies` are study files and their trials,
`storage` holds results, `engine` trains, `reporting` makes tables, figures, verdicts and pages, `tracking`
tells other programs of studies, `cli` is the command line. `plugins` loads what others add to them.
`errors` has the errors of all, `tokenizer` cuts texts, `diagnostics` shows where they are wrong,
`lazy_exports` loads names.
"""

from __future__ import annotations

from importlib import import_module

from .lazy_exports import lazy_exports

__version__ = "0.1.0"

_load, _, __all__ = lazy_exports(__name__)


def __getattr__(name: str) -> object:
    """Return one of the promised names, else the block of that name.

    Raises AttributeError, with the nearest name, where there is neither.
    """
    if name in __all__ or name.startswith("_"):
        return _load(name)
    blocks = import_module(".grammar.block_names", __name__)
    if name not in dir(blocks):
        hint = import_module(".diagnostics", __name__).hint(name, [*__all__, *dir(blocks)])
        raise AttributeError(f"module '{__name__}' has no name '{name}'{hint}")
    globals()[name] = value = getattr(blocks, name)
    return value


def __dir__() -> list[str]:
    """Everything that can be named."""
    return sorted({*globals(), *__all__, *dir(import_module(".grammar.block_names", __name__))})
