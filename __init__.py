"""Architecture search and ablation studies of sequence models: attention against active memory.

    from activemem import build, ff, highway_conv, sa
    model = build(4 * (sa + highway_conv(k=20) >> ff(512)), d_model=128, vocab=20)

`__init__.pyi` lists the public names. Each is loaded on first use, so that `import activemem` costs nothing.
Every block of this package is a name here, too; blocks of other packages are `block("name")`.

`grammar` is the recipe language, and `blocks` has its modules in torch. `studies` has study files and their
trials, `engine` trains them, and `storage` holds the results. `reporting` makes tables, figures, verdicts and
pages, and `tracking` reports studies to other programs. `cli` is the command line. `plugins` loads additions
by others, and those in `extras`. `errors` has the errors of all folders and shows where texts are wrong,
`lazy_exports` loads names.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from .lazy_exports import PROVIDED, lazy_exports

__version__ = "0.1.0"

_load, _, __all__ = lazy_exports(__name__)

PROVIDED |= {
    "block_costs": lambda: import_module(".blocks.costs", __name__),
    "planning": lambda: import_module(".engine.run.planning", __name__),
    "probes": lambda: import_module(".engine.probes.registered_probes", __name__),
    "lm_evaluation": lambda: import_module(".engine.probes.lm_evaluation", __name__),
}


def __getattr__(name: str) -> object:
    """Return the public object, the module or the block with this name.

    Raise AttributeError, with the nearest name, if there is none.
    """
    if name in __all__ or name.startswith("_"):
        return _load(name)
    # `from activemem import studies` asks here first
    if name.isidentifier() and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f".{name}", __name__)
    blocks = import_module(".grammar.block_names", __name__)
    if name not in dir(blocks):
        hint = import_module(".errors", __name__).hint(name, [*__all__, *dir(blocks)])
        raise AttributeError(f"module '{__name__}' has no name '{name}'{hint}")
    globals()[name] = value = getattr(blocks, name)
    return value


def __dir__() -> list[str]:
    """Return the names of all public objects and of all blocks."""
    return sorted({*globals(), *__all__, *dir(import_module(".grammar.block_names", __name__))})
