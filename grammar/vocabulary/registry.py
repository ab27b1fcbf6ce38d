"""Registry of the blocks of this package and of plug-ins."""

from __future__ import annotations

from dataclasses import replace

from ...diagnostics import nearest
from ...plugins import OWN, Registry
from .spec import Spec

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

SPECS: Registry[Spec] = Registry("block")
"""Every block by its name."""


def register(spec: Spec) -> Spec:
    """Add a block of a plug-in; raise ValueError for a name that is taken or invalid."""
    _check(spec)
    SPECS.register(spec.name, spec)
    return spec


def define(*specs: Spec) -> None:
    """Add blocks of this package, as `register` does."""
    for spec in specs:
        _check(spec)
        SPECS.register(spec.name, spec, own=True)


def _check(spec: Spec) -> None:
    if spec.name in RESERVED_WORDS:
        raise ValueError(f"block '{spec.name}': the recipe language has that word")
    for name in (spec.name, *(parameter.name for parameter in spec.parameters)):
        if not (name.isascii() and name.isidentifier()):
            raise ValueError(f"block '{spec.name}': expected a name, got '{name}'")
    bare = [parameter.positional for parameter in spec.parameters]
    if bare != sorted(bare, reverse=True):
        raise ValueError(f"block '{spec.name}': parameters rendered by position come first")


def lookup(name: str) -> Spec | None:
    """Return the block of that name, with its owner, or None."""
    found = SPECS.get(name)
    if found is None or (owner := SPECS.owner(name)) == OWN:
        return found
    return replace(found, owner=owner)


def spec_of(name: str) -> Spec:
    """Return the block of that name in a recipe that was checked."""
    spec = lookup(name)
    assert spec is not None, f"{name} has left the vocabulary"
    return spec


def nearest_block(name: str) -> str | None:
    """Return the block that an unknown name most likely means, or None if none is near."""
    return COMMON_NAMES.get(name.lower()) or nearest(name, registered_names())


def block_code(name: str) -> str | None:
    """Return the plug-in of a block with a digest of its source; None for a block of this package."""
    return SPECS.code(name) if name in SPECS else None


def registered_names() -> tuple[str, ...]:
    """Return the sorted names of all blocks, including blocks of plug-ins."""
    return tuple(sorted(SPECS))


def builtin_names() -> tuple[str, ...]:
    """Return the sorted names of the blocks of this package."""
    return SPECS.own_names()
