"""The vocabulary: every block's parameters, role, cost, reach and source, as data; one registry of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from .nodes import Block, Value
from .plugins import SPECIFICATIONS, Plugins, Problem

if TYPE_CHECKING:
    from .parts import Part

Kind = Literal["integer", "real", "word", "boolean", "recipe", "any"]
"""What a parameter takes; "any" is for values whose place is not known yet."""

Norm = Literal["pre", "post", "none"]
"""Where a sub-layer's normalisation stands: in front of it, behind its residual sum, or nowhere."""

Position = Literal["timing", "none"]
"""How a model tells positions apart: by a timing signal that is added, or not at all."""

ALL = math.inf
"""The reach of a block that sees the whole sequence."""

REQUIRED = object()
"""The default of a parameter that must be given."""

OWNER = "activemem"
"""The owner of the blocks of this package; those of others have their package's name and version."""

RESERVED = ("tied", "choice", "integer", "real", "true", "false")
"""The words of the language itself; no block is called so."""

Settings = Mapping[str, Value]
"""Every parameter of a block with its value, defaults filled in."""


class Role(StrEnum):
    """What a block does to a sequence; sums and series are checked against it."""

    MIXER = "mixer"  # sequence to sequence, positions see each other
    CHANNEL = "channel"  # sequence to sequence, each position by itself
    POOL = "pool"  # sequence to vector
    TRANSDUCER = "transducer"  # sequence to a sequence of another length


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A typed parameter of a block; `words` only for kind "word", bounds (included) only for numbers."""

    name: str
    kind: Kind
    default: object = REQUIRED
    low: float | None = None
    high: float | None = None
    words: tuple[str, ...] = ()
    bare: bool = False  # rendered by position, as the 512 of ff(512)
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where a block stands: model width, sequence length in tokens, and whether the future is hidden.

    `dropout` is the model's rate in training, `attention_dropout` that on the weights of attention; `norm`,
    `residual` and `position` are the model's too. `past` positions in front of the sequence are held, as in a
    stream.
    """

    width: int
    length: int
    causal: bool
    dropout: float = 0.0
    norm: Norm = "pre"
    residual: bool = True
    position: Position = "timing"
    attention_dropout: float = 0.0
    past: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a block costs on one sequence of the context's length.

    `parameters` counts its own numbers, `shared` those that the model holds once, by key;
    `flops` counts the forward pass's products and sums (two a multiply-add; element-wise work left out).
    Generation keeps `state` numbers for each past token, and `window` numbers however many are past.
    Training keeps `saved` numbers of each sequence for the backward pass, `saved_once` of each batch, and,
    where `saves_input`, the block's input, which the parts of a sum have in common. Where `saves_output`,
    what the block gives is among what is saved, so that nothing behind it saves that again.
    A whole model says how wide its `outputs` are; 0 is the model's width. Its `parts`, if it tells them, are
    what all of its other figures are the sums of.
    """

    parameters: int
    flops: int
    shared: Mapping[str, int] = field(default_factory=dict)
    state: int = 0
    window: int = 0
    saved: int = 0
    saved_once: int = 0
    saves_input: bool = True
    saves_output: bool = False
    outputs: int = 0
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How many tokens to the left and to the right of a position can move its output; ALL for no bound."""

    left: float
    right: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One block of the vocabulary; `check` says what its parameters do not allow each other, or None."""

    name: str
    role: Role
    parameters: tuple[Parameter, ...] = ()
    summary: str
    equation: str
    source: str
    cost: Callable[[Settings, Context], Cost]
    reach: Callable[[Settings, Context], Reach]
    check: Callable[[Settings], str | None] | None = None
    owner: str = OWNER

    def settings(self, block: Block) -> Settings:
        """Every parameter of the block with its value, defaults filled in."""
        given = dict(block.arguments)
        return {p.name: given.get(p.name, p.default) for p in self.parameters}  # pyright: ignore[reportReturnType] -- a required parameter is always given in a checked recipe

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name, or None."""
        return next((p for p in self.parameters if p.name == name), None)


_specs: dict[str, Spec] = {}


def whole(settings: Settings, name: str) -> int:
    """The whole number that a parameter of a block has, once every hole and dimension is filled."""
    value = settings[name]
    assert isinstance(value, int), f"{name} is still open: {value}"
    return value


def word(settings: Settings, name: str) -> str:
    """The word that a parameter of a block has, once every hole and dimension is filled."""
    value = settings[name]
    assert isinstance(value, str), f"{name} is still open: {value}"
    return value


def number(settings: Settings, name: str) -> float:
    """The number that a parameter of a block has, once every hole and dimension is filled."""
    value = settings[name]
    assert isinstance(value, float), f"{name} is still open: {value}"
    return value


def truth(settings: Settings, name: str) -> bool:
    """The truth value that a parameter of a block has, once every hole and dimension is filled."""
    value = settings[name]
    assert isinstance(value, bool), f"{name} is still open: {value}"
    return value


def register(spec: Spec) -> Spec:
    """Add a block; ValueError for a name that is taken or no name, and for parameters that cannot be."""
    if spec.name in RESERVED:
        raise ValueError(f"block '{spec.name}' of {spec.owner}: the recipe language has that word")
    for name in (spec.name, *(parameter.name for parameter in spec.parameters)):
        if not (name.isascii() and name.isidentifier()):
            raise ValueError(f"block '{spec.name}' of {spec.owner}: expected a name, got '{name}'")
    bare = [parameter.bare for parameter in spec.parameters]
    if bare != sorted(bare, reverse=True):
        raise ValueError(f"block '{spec.name}' of {spec.owner}: parameters rendered by position come first")
    taken = _specs.get(spec.name)
    if taken is not None:
        raise ValueError(f"block '{spec.name}' of {spec.owner} is already defined by {taken.owner}")
    _specs[spec.name] = spec
    return spec


def _take(found: object, name: str, owner: str) -> Spec:
    """The specification of an entry point, registered as its package's; ValueError for what is none."""
    if not isinstance(found, Spec):
        raise ValueError(f"expected a Spec, got {type(found).__name__}")
    if found.name != name:
        raise ValueError(f"expected the specification of '{name}', got that of '{found.name}'")
    if _specs.get(name) is found:  # its module has registered it already, but not as its package's
        del _specs[name]
    return register(replace(found, owner=owner))


_plugins = Plugins(SPECIFICATIONS, _take)


def lookup(name: str) -> Spec | None:
    """The block of that name, or None; other packages are asked for what is not known here."""
    return _specs.get(name) or _plugins.find(name)


def names() -> tuple[str, ...]:
    """The names of all blocks, those of other packages among them, sorted."""
    for name in _plugins.names():
        _plugins.find(name)
    return tuple(sorted(_specs))


def own_names() -> tuple[str, ...]:
    """The names of the blocks of this package, sorted."""
    return tuple(sorted(name for name, spec in _specs.items() if spec.owner == OWNER))


def problem(name: str) -> Problem | None:
    """Why a block that another package brings cannot be used; None if nothing is wrong with it."""
    return _plugins.problem(name)


def problems() -> tuple[Problem, ...]:
    """Everything that is wrong with the blocks that other packages bring."""
    found = (_plugins.problem(name) for name in _plugins.names())
    return tuple(one for one in found if one is not None)
