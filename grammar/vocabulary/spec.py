"""Specifications of blocks.

A part gives a sequence, a vector, or a sequence of another length: its output kind. Sums and series are
checked by the output kinds of their parts, because the parts must fit together. Channel blocks keep the kind
of their input: after a pool they map the vector, as a sequence of one. A hole has the kind of its content,
and is checked once it is filled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeVar

from ...errors import nearest
from ...plugins import OWN, PluginError, Registry
from ..nodes import BlockNode, ChoiceDimension, RepeatNode, SeriesNode, SumNode, TiedNode, Value, walk
from ..positions import POSITIONS, RandomisedPairs

if TYPE_CHECKING:  # Pydantic, which it loads, is slow to load
    from ..model_config import ModelConfig

ParameterKind = Literal["integer", "real", "word", "name", "boolean", "recipe", "any"]
"""The kind of a parameter's value; a "name" is one that another package defines, and "any" is for an
unknown parameter."""

UNBOUNDED = math.inf
"""The reach of a block that sees the whole sequence."""

REQUIRED = object()
"""The default of a required parameter."""

OWNER = "activemem"
"""The owner of built-in blocks; the owner of a plug-in's block is its package and version."""

Settings = Mapping[str, Value]
"""The values of all parameters of a block, defaults included."""


class Role(StrEnum):
    """Category of a block by its input and output, such as sequence to vector.

    The role decides where sums and series may contain the block.
    """

    MIXER = "mixer"  # sequence to sequence, positions see each other
    CHANNEL = "channel"  # sequence to sequence, each position by itself
    POOL = "pool"  # sequence to vector
    TRANSDUCER = "transducer"  # sequence to a sequence of another length


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a block, with its type, its default and its inclusive bounds.

    `words` are the values of kind "word", and examples for kind "name". The message for a value above `high`
    ends with `advice`.
    """

    name: str
    kind: ParameterKind
    default: object = REQUIRED
    low: float | None = None
    high: float | None = None
    words: tuple[str, ...] = ()
    positional: bool = False  # rendered by position, as the 512 of ff(512)
    meaning: str
    advice: str = ""


def integer(
    name: str, meaning: str, bounds: tuple[int, int], default: object = REQUIRED, *, positional: bool = False
) -> Parameter:
    """Return a parameter that takes a whole number within bounds."""
    low, high = bounds
    return Parameter(
        name=name, kind="integer", default=default, low=low, high=high, positional=positional, meaning=meaning
    )


def real(name: str, meaning: str, bounds: tuple[float, float], default: float) -> Parameter:
    """Return a parameter that takes a real number within bounds."""
    return Parameter(name=name, kind="real", default=default, low=bounds[0], high=bounds[1], meaning=meaning)


def word(name: str, meaning: str, words: tuple[str, ...], default: str | None = None) -> Parameter:
    """Return a parameter whose value is one of `words`; its default is `default`, or else the first word."""
    return Parameter(name=name, kind="word", default=default or words[0], words=words, meaning=meaning)


def boolean(name: str, meaning: str) -> Parameter:
    """Return a parameter that is true or false, with the default false."""
    return Parameter(name=name, kind="boolean", default=False, meaning=meaning)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigContext:
    """Base class of the settings that a block or its costs depend on: the model config and more."""

    config: ModelConfig

    @property
    def width(self) -> int:
        """Return the width of the model."""
        return self.config.settings.d_model

    @property
    def causal(self) -> bool:
        """Return whether the model is causal: no output depends on later positions."""
        return self.config.interface.causal


@dataclass(frozen=True, slots=True, kw_only=True)
class CostContext(ConfigContext):
    """The model config and the sequence length, on which a block's reach and state depend."""

    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Numbers of tokens to the left and right that can affect an output; UNBOUNDED (∞) means all.

    Raise ValueError for anything else.
    """

    left: float
    right: float

    def __post_init__(self) -> None:
        for side in ("left", "right"):
            value: object = getattr(self, side)
            if not isinstance(value, int | float) or not value >= 0:
                raise ValueError(f"{side}: expected a number of tokens, or math.inf for all; got {value!r}")


def sees_everything(_settings: Settings, context: CostContext) -> Reach:
    """Return the reach of a block that sees the whole sequence or, in a causal model, the whole past.

    It has no limit on the sides that the model allows.
    """
    return Reach(left=UNBOUNDED, right=0 if context.causal else UNBOUNDED)


def sees_the_past(_settings: Settings, _context: CostContext) -> Reach:
    """Return the reach of a block that sees all of the past, in any model."""
    return Reach(left=UNBOUNDED, right=0)


def sees_unstated(settings: Settings, context: CostContext) -> Reach:
    """Return the largest possible reach, for a plug-in's block that does not state its reach."""
    return sees_everything(settings, context)


def sees_itself(_settings: Settings, _context: CostContext) -> Reach:
    """Return the reach of a block that maps each position separately: 0 on both sides."""
    return Reach(left=0, right=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The specification of a block: its parameters and other properties.

    Tests check the module against these properties. Costs are not stated here: `measured_costs` measures them
    from the module.

    - `state` returns how many numbers the block keeps for each past token while it generates.
    - `window` returns how many numbers it keeps besides these, for any number of past tokens.
      Without `state` and `window`, a mixer keeps its inputs within its reach.
    - `check` returns a fault of the arguments in combination, or None.
    - `compares_positions` says whether the block compares pairs of positions. Only then does the model's
      setting `position = randomised_pairs` have an effect on it.
    - `depends_on_target_length` marks transducers whose outputs depend on the target's length, if it
      exceeds the source's length.
    - `package` is the package whose layers the block builds, None if it needs none. Such a block also takes
      the arguments of the layer. Its FLOPs leave out the package's kernels, and its state is measured.
    """

    name: str
    role: Role
    parameters: tuple[Parameter, ...] = ()
    summary: str
    equation: str
    source: str
    reach: Callable[[Settings, CostContext], Reach]
    state: Callable[[Settings, CostContext], int] | None = None
    window: Callable[[Settings, CostContext], int] | None = None
    check: Callable[[Settings], str | None] | None = None
    compares_positions: Callable[[Settings], bool] | None = None
    depends_on_target_length: bool = False
    package: str | None = None
    owner: str = OWNER

    def settings(self, block: BlockNode) -> Settings:
        """Return all arguments of a block by name, with defaults and those that no parameter declares."""
        given = dict(block.arguments)
        return {p.name: p.default for p in self.parameters} | given  # pyright: ignore[reportReturnType] -- a required parameter is always given in a checked recipe

    def generation_state(self, settings: Settings, context: CostContext) -> tuple[int, int]:
        """Return two counts of cached numbers: for each past token, and independent of past tokens.

        Both are the numbers that the block keeps while it generates.
        """
        if self.state is not None or self.window is not None:
            return tuple(say(settings, context) if say else 0 for say in (self.state, self.window))  # pyright: ignore[reportReturnType] -- two
        if self.role is not Role.MIXER:
            return 0, 0
        left = self.reach(settings, context).left
        return (context.width, 0) if math.isinf(left) else (0, int(left) * context.width)

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of that name, or None."""
        return next((p for p in self.parameters if p.name == name), None)


def as_int(settings: Settings, name: str) -> int:
    """Return the value of a whole-number parameter. It must not be a hole or a search dimension."""
    return _typed(settings, name, int)


def as_word(settings: Settings, name: str) -> str:
    """Return the value of a word parameter, like `as_int`."""
    return _typed(settings, name, str)


def as_float(settings: Settings, name: str) -> float:
    """Return the value of a real-number parameter, like `as_int`."""
    return _typed(settings, name, float)


def as_bool(settings: Settings, name: str) -> bool:
    """Return the value of a boolean parameter, like `as_int`."""
    return _typed(settings, name, bool)


ScalarT = TypeVar("ScalarT", int, float, str, bool)


def _typed(settings: Settings, name: str, kind: type[ScalarT]) -> ScalarT:
    value = settings[name]
    assert isinstance(value, kind), f"{name} has no value yet: {value}"
    return value


RESERVED_WORDS = ("tied", "each", "choice", "integer", "real", "true", "false")
"""Reserved words of the language, which cannot name a block."""

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
    "rnn": "gru",
    "convolution": "conv",
    "conv1d": "conv",
    "cnn": "conv",
    "ssm": "mamba",
    "s6": "mamba",
    "mamba2": "ssd",
    "deltanet": "delta",
    "gated_deltanet": "delta",
    "linear_attention": "linear_attn",
    "gated_linear_attention": "gla",
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
"""Common names of blocks that have another name here, for errors about unknown blocks."""

NOT_BLOCKS = {
    "transformer": "a Transformer is 4 * (sa >> ff(512)), for example",
    "dropout": "it is a setting of the model, such as dropout = 0.1",
    "norm": "it is a setting of the model, norm and norm_kind",
    "layernorm": "it is a setting of the model, norm and norm_kind",
    "layer_norm": "it is a setting of the model, norm and norm_kind",
}
"""What to write for common names of parts that are not blocks, for errors about unknown blocks."""

COMMON_WORDS = {"rotary": "rope", "swish": "silu", "rel_pos": "relative"}
"""Common names of values of arguments that have another name here."""

SPECS: Registry[Spec] = Registry("block")
"""Every block by its name."""


def register(spec: Spec) -> Spec:
    """Register the specification of a plug-in's block; raise PluginError for a taken or invalid name."""
    _check(spec)
    SPECS.register(spec.name, spec)
    return spec


def define(*specs: Spec) -> None:
    """Register the specifications of built-in blocks."""
    for spec in specs:
        _check(spec)
        SPECS.register(spec.name, spec, own=True)


def _check(spec: Spec) -> None:
    if spec.name in RESERVED_WORDS:
        raise PluginError(f"block '{spec.name}': this name is a word of the recipe language")
    for name in (spec.name, *(parameter.name for parameter in spec.parameters)):
        if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
            expected = "expected letters, digits and '_' as a name"
            raise PluginError(f"block '{spec.name}': {expected}, got '{name}'")
    bare = [parameter.positional for parameter in spec.parameters]
    if bare != sorted(bare, reverse=True):
        raise PluginError(f"block '{spec.name}': parameters without names must come first")


def lookup(name: str) -> Spec | None:
    """Return the specification of the named block; None if there is no block with that name."""
    found = SPECS.get(name)
    if found is None or (owner := SPECS.owner(name)) == OWN:
        return found
    return replace(found, owner=owner)


def spec_of(name: str) -> Spec:
    """Return the specification of a block of a checked recipe. The block must exist."""
    spec = lookup(name)
    assert spec is not None, f"{name} was removed from the vocabulary"
    return spec


def nearest_block(name: str) -> str | None:
    """Return the block name that is most similar to an unknown name; None if none is similar."""
    return COMMON_NAMES.get(name.lower()) or nearest(name, registered_names())


def block_with_word(value: str) -> str:
    """Return a block with an argument of this value, such as `sa(pos=rope)` for `rope` or `rotary`, or ""."""
    word = COMMON_WORDS.get(value.lower(), value.lower())
    found = (
        (spec, parameter.name)
        for spec in SPECS.values()
        for parameter in spec.parameters
        if parameter.kind == "word" and word in parameter.words
    )
    # `activation(act=relu)` says more than an argument of a large block
    spec, name = min(found, key=lambda each: len(each[0].parameters) > 1, default=(None, ""))
    return "" if spec is None else f"{spec.name}({name}={word})"


def block_code(name: str) -> str | None:
    """Return the plug-in that registered a block, with a hash of its source; None for a built-in block."""
    return SPECS.code(name) if name in SPECS else None


def registered_names() -> tuple[str, ...]:
    """Return the sorted names of all blocks, including those of plug-ins."""
    return tuple(sorted(SPECS))


def builtin_names() -> tuple[str, ...]:
    """Return the sorted names of the built-in blocks."""
    return SPECS.own_names()


OUTPUT_KINDS = {
    Role.MIXER: "a sequence",
    Role.CHANNEL: "a sequence",
    Role.POOL: "a vector",
    Role.TRANSDUCER: "a sequence of another length",
}
"""The output of a block of each role, as messages name it."""

SEQUENCE, VECTOR, OTHER_LENGTH = (
    OUTPUT_KINDS[Role.MIXER],
    OUTPUT_KINDS[Role.POOL],
    OUTPUT_KINDS[Role.TRANSDUCER],
)


def output_kind(node: Value) -> str | None:
    """Return the kind of a part's output, such as a vector.

    It is one of OUTPUT_KINDS, or None if it depends on an unfilled hole.
    """
    match node:
        case BlockNode():
            spec = lookup(node.name)
            return OUTPUT_KINDS[spec.role] if spec else None
        case SeriesNode():
            return _series_output(node.parts)
        case SumNode():
            return _first_known_output(node.parts)
        case ChoiceDimension():
            return _first_known_output(node.options)
        case RepeatNode() | TiedNode():
            return output_kind(node.body)
        case _:
            return None


def _blocks(node: Value) -> Iterator[tuple[BlockNode, Spec]]:
    for inside in walk(node):
        if isinstance(inside, BlockNode) and (spec := lookup(inside.name)) is not None:
            yield inside, spec


def mixes_positions(node: Value) -> bool:
    """Return whether a part contains a block that mixes positions (role "mixer")."""
    return any(spec.role is Role.MIXER for _, spec in _blocks(node))


def pair_position_fault(root: Value, position: str) -> str | None:
    """Return a message if no block uses the setting `position`, else None.

    Only `randomised_pairs` can be unused: it needs a block that compares pairs of positions, such as
    `sa(pos=rope)`.
    """
    if not isinstance(POSITIONS.get(position), RandomisedPairs):
        return None
    for block, spec in _blocks(root):
        if spec.compares_positions is not None and spec.compares_positions(spec.settings(block)):
            return None
    return f"{position} needs a mixer with pairwise positions, for example sa(pos=rope)"


def uncounted_kernels(root: Value) -> str:
    """Return a note on kernels whose FLOPs are not counted, or "" if the FLOPs are exact."""
    found = {block.name: spec.package for block, spec in _blocks(root) if spec.package}
    return "; ".join(f"FLOPs of {name} leave out the kernels of {package}" for name, package in found.items())


def is_positionwise(node: Value) -> bool:
    """Return whether a part maps each position separately.

    Such a part can also map a single vector. A hole counts as such a part.
    """
    return all(spec.role is Role.CHANNEL for _, spec in _blocks(node))


def find_mismatch(parts: tuple[Value | None, ...]) -> tuple[int, int] | None:
    """Return the indices of the first two parts with different kinds of output, or None."""
    known = [(place, output_kind(part)) for place, part in enumerate(parts) if part is not None]
    known = [(place, gives) for place, gives in known if gives is not None]
    return next(((known[0][0], place) for place, gives in known if gives != known[0][1]), None)


def _series_output(parts: tuple[Value, ...]) -> str | None:
    """Return the kind of output of a series; channel blocks do not change it."""
    found = [output_kind(part) for part in parts]
    if VECTOR in found:
        return VECTOR
    return OTHER_LENGTH if found[-1] == SEQUENCE and OTHER_LENGTH in found else found[-1]


def _first_known_output(parts: tuple[Value, ...]) -> str | None:
    return next((gives for part in parts if (gives := output_kind(part)) is not None), None)
