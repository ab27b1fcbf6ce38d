"""The vocabulary: every block's parameters, role, cost, reach and source, as data; one registry of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from .nodes import Block, Value

Kind = Literal["integer", "real", "word", "boolean", "recipe", "any"]
"""What a parameter takes; "any" is for values whose place is not known yet."""

ALL = math.inf
"""The reach of a block that sees the whole sequence."""

REQUIRED = object()
"""The default of a parameter that must be given."""

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
    """Where a block stands: model width, sequence length in tokens, and whether the future is hidden."""

    width: int
    length: int
    causal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a block costs on one sequence of the context's length.

    `parameters` counts its own numbers, `shared` those that the model holds once, by key;
    `flops` counts the forward pass's products and sums (two a multiply-add; element-wise work left out);
    `state` counts the numbers kept for each past token in generation.
    """

    parameters: int
    flops: int
    shared: Mapping[str, int] = field(default_factory=dict)
    state: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How many tokens to the left and to the right of a position can move its output; ALL for no bound."""

    left: float
    right: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One block of the vocabulary."""

    name: str
    role: Role
    parameters: tuple[Parameter, ...] = ()
    summary: str
    equation: str
    source: str
    cost: Callable[[Settings, Context], Cost]
    reach: Callable[[Settings, Context], Reach]
    owner: str = "activemem"

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


def register(spec: Spec) -> Spec:
    """Add a block; raises ValueError for a word of the language and for a name that is taken."""
    if spec.name in RESERVED:
        raise ValueError(f"block '{spec.name}' of {spec.owner}: the recipe language has that word")
    bare = [parameter.bare for parameter in spec.parameters]
    assert bare == sorted(bare, reverse=True), f"{spec.name}: parameters rendered by position come first"
    taken = _specs.get(spec.name)
    if taken is not None:
        raise ValueError(f"block '{spec.name}' of {spec.owner} is already defined by {taken.owner}")
    _specs[spec.name] = spec
    return spec


def lookup(name: str) -> Spec | None:
    """The block of that name, or None."""
    return _specs.get(name)


def names() -> tuple[str, ...]:
    """The names of all blocks, sorted."""
    return tuple(sorted(_specs))
