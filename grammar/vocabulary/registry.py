"""The registry of blocks: those of this package, and those that other packages bring."""

from __future__ import annotations

from dataclasses import replace

from ...diagnostics import nearest
from ...plugins import OpenRegistry, file_of_module
from .entry_points import SPEC_GROUP, PluginProblem, PluginRegistry, block_package_code
from .spec import OWNER, Spec

RESERVED_WORDS = ("tied", "each", "choice", "integer", "real", "true", "false")
"""The words of the language itself; no block is called so."""

COMMON_NAMES = {
    "attention": "sa",
    "self_attention": "sa",
    "multihead_attention": "sa",
    "mha": "sa",
    "mlp": "ff",
    "ffn": "ff",
    "feedforward": "ff",
    "swiglu": "glu",
    "geglu": "glu",
    "linear": "dense",
    "relu": "activation",
    "gelu": "activation",
    "convolution": "conv",
    "conv1d": "conv",
    "cnn": "conv",
    "ssm": "mamba",
    "s6": "mamba",
    "mamba2": "ssd",
    "deltanet": "delta",
    "linear_attention": "linear_attn",
    "retnet": "retention",
    "rwkv": "rwkv7",
    "griffin": "rg_lru",
    "hawk": "rg_lru",
    "mean": "mean_pool",
    "average_pool": "mean_pool",
    "mla": "latent_attn",
    "differential_attention": "diff_attn",
    "xlstm": "mlstm",
    "forgetting_attention": "fox",
}
"""Names that the field has for blocks which have another name here, for errors about unknown blocks."""

_specs: dict[str, Spec] = {}

PLUGIN_SPECS: OpenRegistry[Spec] = OpenRegistry("block")
"""The blocks that plug-ins register together with their modules."""


def register(spec: Spec) -> Spec:
    """Add a block; ValueError for a name that is taken or no name, and for parameters that cannot be."""
    _check(spec)
    taken = _specs.get(spec.name)
    if taken is not None:
        raise ValueError(f"block '{spec.name}' of {spec.owner} is already defined by {taken.owner}")
    _specs[spec.name] = spec
    return spec


def register_plugin_spec(spec: Spec) -> None:
    """Add a block of a plug-in, which owns it; raises ValueError as `register` does."""
    _check(spec)
    if spec.name in _specs:
        raise ValueError(f"the block '{spec.name}' is already defined by {_specs[spec.name].owner}")
    PLUGIN_SPECS.register(spec.name, spec)


def _check(spec: Spec) -> None:
    """Raise ValueError for names that cannot be, and for parameters in a wrong order."""
    if spec.name in RESERVED_WORDS:
        raise ValueError(f"block '{spec.name}' of {spec.owner}: the recipe language has that word")
    for name in (spec.name, *(parameter.name for parameter in spec.parameters)):
        if not (name.isascii() and name.isidentifier()):
            raise ValueError(f"block '{spec.name}' of {spec.owner}: expected a name, got '{name}'")
    bare = [parameter.positional for parameter in spec.parameters]
    if bare != sorted(bare, reverse=True):
        raise ValueError(f"block '{spec.name}' of {spec.owner}: parameters rendered by position come first")


def _register_plugin(found: object, name: str, owner: str) -> Spec:
    """The specification of an entry point, registered as its package's; ValueError for what is none."""
    if not isinstance(found, Spec):
        raise ValueError(f"expected a Spec, got {type(found).__name__}")
    if found.name != name:
        raise ValueError(f"expected the specification of '{name}', got that of '{found.name}'")
    if _specs.get(name) is found:  # its module has registered it already, but not as its package's
        del _specs[name]
    return register(replace(found, owner=owner))


_plugins = PluginRegistry(SPEC_GROUP, _register_plugin)


def lookup(name: str) -> Spec | None:
    """Return the block of that name, or None; plug-ins are asked for names that are not known here."""
    if (own := _specs.get(name)) is not None:
        return own
    if (found := PLUGIN_SPECS.get(name)) is not None:
        return replace(found, owner=PLUGIN_SPECS.owner(name))
    return _plugins.find(name)


def spec_of(name: str) -> Spec:
    """The block of that name in a recipe that was checked."""
    spec = lookup(name)
    assert spec is not None, f"{name} has left the vocabulary"
    return spec


def nearest_block(name: str) -> str | None:
    """Return the block that an unknown name most likely means, or None if none is near."""
    return COMMON_NAMES.get(name.lower()) or nearest(name, registered_names())


def block_code(name: str) -> str | None:
    """The plug-in that brings a block, with a digest of its source; None for the blocks of this package."""
    spec = lookup(name)
    if spec is None:
        return None
    if name not in _specs and name in PLUGIN_SPECS:
        return PLUGIN_SPECS.code(name)
    file = file_of_module(getattr(spec.reach, "__module__", ""))
    if file is not None:
        return file.code
    return None if spec.owner == OWNER else block_package_code(name)


def registered_names() -> tuple[str, ...]:
    """The names of all blocks, those of other packages among them, sorted."""
    for name in _plugins.names():
        _plugins.find(name)
    return tuple(sorted({*_specs, *PLUGIN_SPECS}))


def builtin_names() -> tuple[str, ...]:
    """The names of the blocks of this package, sorted."""
    return tuple(sorted(name for name, spec in _specs.items() if spec.owner == OWNER))


def plugin_problem(name: str) -> PluginProblem | None:
    """Why a block that another package brings cannot be used; None if nothing is wrong with it."""
    return _plugins.problem(name)


def plugin_problems() -> tuple[PluginProblem, ...]:
    """Everything that is wrong with the blocks that other packages bring."""
    found = (_plugins.problem(name) for name in _plugins.names())
    return tuple(one for one in found if one is not None)
