"""A block as data: its parameters, role, cost, reach and source."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from ..model_config import ModelConfig
from ..nodes import BlockNode, Value

if TYPE_CHECKING:
    from .cost_tree import ModelPart

ParameterKind = Literal["integer", "real", "word", "boolean", "recipe", "any"]
"""What a parameter takes; "any" is for values whose place is not known yet."""

UNBOUNDED = math.inf
"""The reach of a block that sees the whole sequence."""

REQUIRED = object()
"""The default of a parameter that must be given."""

OWNER = "activemem"
"""The owner of the blocks of this package; those of others have their package's name and version."""

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
    kind: ParameterKind
    default: object = REQUIRED
    low: float | None = None
    high: float | None = None
    words: tuple[str, ...] = ()
    positional: bool = False  # rendered by position, as the 512 of ff(512)
    meaning: str


Device = Literal["cpu", "gpu"]
"""What computes a training step, of which each keeps other things."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuBatch:
    """So many sequences that a CPU computes at once, and how many times fewer products it takes pains for."""

    sequences: int
    gain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostContext:
    """Where a block is analysed: in which model, and on sequences of how many tokens.

    In front of a sequence `past` positions are held, as in a stream. A stack that `checkpoints` keeps the
    inputs of its sub-layers alone. What is kept is that of a `device`; of a `cpu` whose batches are known
    convolutions keep what they have computed by frequencies.
    """

    config: ModelConfig
    length: int
    past: int = 0
    checkpoints: bool = False
    device: Device = "cpu"
    cpu: CpuBatch | None = None

    @property
    def width(self) -> int:
        """The width of the model."""
        return self.config.d_model

    @property
    def causal(self) -> bool:
        """Whether the future is hidden."""
        return self.config.causal

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU computes it."""
        return self.device == "gpu"

    def dropout_mask(self, numbers: int) -> int:
        """The room of what dropout has kept of so many numbers, in numbers: of a GPU a byte for each."""
        return (numbers + 3) // 4 if self.on_gpu else numbers

    def saved_weights(self, numbers: int) -> int:
        """What training keeps of so many weights of attention: if some are dropped, which and the rest."""
        return 2 * numbers + (numbers + 3) // 4 if self.config.attention_dropout else numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """What a block holds for a while: so many `numbers` of each sequence of a batch, and `once` of a batch.

    To that come `in_part` numbers of each of the sequences that are computed at once, `part` at most.
    """

    numbers: int = 0
    once: int = 0
    in_part: int = 0
    part: int = 0

    def bytes(self, batch: int) -> int:
        """Those of a batch of so many sequences."""
        return 4 * (batch * self.numbers + self.once + min(batch, self.part) * self.in_part)


NO_WORKING = Working()
"""Where little is held beside what is saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a block costs on one sequence of the context's length.

    `parameters` counts its own numbers, `shared` those that the model holds once, by key;
    `flops` counts the forward pass's products and sums (two a multiply-add; element-wise work left out).
    Generation keeps `state` numbers for each past token, and `window` numbers however many are past.
    Training keeps `saved` numbers of each sequence for the backward pass, `saved_once` of each batch, and,
    where `saves_input`, the block's input, which the parts of a sum have in common. Where `saves_output`,
    what the block gives is among what is saved, so that nothing behind it saves that again. Fused kernels
    keep `kernels` numbers of each sequence more, which are in no tensor that autograd saves. What a pass
    holds for a while beside all that is `working`, at its most, stated where it is much.
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
    kernels: int = 0
    working: Working = NO_WORKING
    saves_input: bool = True
    saves_output: bool = False
    outputs: int = 0
    parts: tuple[ModelPart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How many tokens to the left and to the right of a position can move its output, or UNBOUNDED."""

    left: float
    right: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One block of the vocabulary; `check` says what its parameters do not allow each other, or None.

    `compares_positions` says whether it does so by numbers that a model may draw (`randomised_pairs`).
    `compiled_for_each_length` says whether `torch.compile` makes a program of it for each length, as of a
    loop over positions; of others it makes one for most lengths, or one for as many chunks.
    `depends_on_target_length` is for transducers whose outputs depend on how many there will be, where these
    are more than the source has.
    """

    name: str
    role: Role
    parameters: tuple[Parameter, ...] = ()
    summary: str
    equation: str
    source: str
    cost: Callable[[Settings, CostContext], Cost]
    reach: Callable[[Settings, CostContext], Reach]
    check: Callable[[Settings], str | None] | None = None
    compares_positions: Callable[[Settings], bool] | None = None
    compiled_for_each_length: Callable[[Settings], bool] | None = None
    depends_on_target_length: bool = False
    owner: str = OWNER

    def settings(self, block: BlockNode) -> Settings:
        """Every parameter of the block with its value, defaults filled in."""
        given = dict(block.arguments)
        return {p.name: given.get(p.name, p.default) for p in self.parameters}  # pyright: ignore[reportReturnType] -- a required parameter is always given in a checked recipe

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name, or None."""
        return next((p for p in self.parameters if p.name == name), None)


def as_int(settings: Settings, name: str) -> int:
    """The whole number that a parameter of a block has, once every hole and dimension is filled."""
    value = settings[name]
    assert isinstance(value, int), f"{name} is still open: {value}"
    return value


def as_word(settings: Settings, name: str) -> str:
    """The word that a parameter of a block has, once every hole and dimension is filled."""
    value = settings[name]
    assert isinstance(value, str), f"{name} is still open: {value}"
    return value


def as_float(settings: Settings, name: str) -> float:
    """The number that a parameter of a block has, once every hole and dimension is filled."""
    value = settings[name]
    assert isinstance(value, float), f"{name} is still open: {value}"
    return value


def as_bool(settings: Settings, name: str) -> bool:
    """The truth value that a parameter of a block has, once every hole and dimension is filled."""
    value = settings[name]
    assert isinstance(value, bool), f"{name} is still open: {value}"
    return value
