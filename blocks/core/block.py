"""The base class of blocks, and the registry of their modules.

Blocks can also read a stream: a long sequence that a model reads piece by piece.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from typing import Any, ClassVar, Self, TypeVar, cast, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...errors import ActivememError, describe_value, hint, nearest_hint, with_article
from ...grammar import nodes
from ...grammar.canonical import render
from ...grammar.vocabulary.spec import (
    SPECS,
    ConfigContext,
    CostContext,
    Parameter,
    ParameterKind,
    Reach,
    Role,
    Settings,
    Spec,
    lookup,
    register,
    sees_itself,
    sees_unstated,
)
from ...plugins import OWN, PluginError, Registry, check_part, contract_faults, plugin_errors
from .plugin_parts import build_plugin_part

ModuleT = TypeVar("ModuleT", bound=nn.Module)


class BuildError(ActivememError):
    """Error for a valid recipe that cannot be built, for example because a block has no module."""


class InputError(ActivememError):
    """Error for an input that a model cannot read: a tensor, a text, or a line, with its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(ConfigContext):
    """The model config and the shared modules that a block is built from."""

    shared: dict[Hashable, nn.Module] = field(default_factory=dict)

    def share(self, key: Hashable, make: Callable[[], ModuleT]) -> ModuleT:
        """Return the module that blocks share under the name `key`. The first call creates it with `make`."""
        if key not in self.shared:
            self.shared[key] = make()
        return cast("ModuleT", self.shared[key])


class Block(nn.Module, ABC):
    """Base class of blocks, which map sequences to sequences of the same shape.

    The result depends only on parameters, input and mask.

    Finite inputs at masked positions never affect a valid position of the output. NaN and infinity may: set
    them to zero. A call from outside of a model raises InputError as `check_sequences` does.

    `context_length` is how many past inputs a causal stream must keep for exact outputs; None if unbounded.
    `build_block` derives it from the reach in the specification. A block that sees the whole past through a
    state of fixed size overrides `step_with_grad` and sets `state_is_bounded`. The costs of a block that
    `loops_over_positions` in Python are measured at short lengths. `build_block` sets `recipe`, the canonical
    text of the block.
    """

    recipe: str = ""
    context_length: int | None = None
    state_is_bounded: ClassVar[bool] = False
    loops_over_positions: ClassVar[bool] = False

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """Build the block from its settings. Parts that are `Initialisable` get their weights later.

        A constructor with a parameter `context` gets `settings` and `context`. Any other constructor gets the
        model's `width`, whether it is `causal`, and each parameter of the block.
        """
        make: Callable[..., Self] = cls
        if "context" in signature(cls).parameters:
            return make(settings, context)
        return make(width=context.width, causal=context.causal, **settings)

    def __call__(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Check the arguments, and call `forward`."""
        check_sequences(x, mask)
        return self.call_unchecked(x, mask)

    call_unchecked = nn.Module.__call__  # for models, whose masks are made from lengths

    @abstractmethod
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map (batch, length, width) to the same shape.

        `mask` (batch, length), never (length, length), is true at the first positions of each sequence, and
        false at the padding that follows.
        """

    def forward_with_past(self, x: Tensor, past: Tensor) -> Tensor:
        """Return the outputs at x, given the inputs before it.

        x is (batch, length, width), and `past` is the earlier inputs (batch, p, width). p is
        `context_length`, or less if the stream began p positions ago. Only for blocks of causal models.
        """
        return self(torch.cat([past, x], 1))[:, past.shape[1] :]

    def step(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Process x, the next piece of a stream, and return its outputs and the block's next state.

        A state is one tensor, with the batch as its first dimension and no gradient; it is None before the
        first piece. Raise BuildError if the state would grow with the stream, or is of another batch size.
        """
        if state is not None and len(state) != len(x):
            raise BuildError(f"expected a state of batch size {len(x)}, as of the input, got {len(state)}")
        if self.context_length is None and not self.state_is_bounded:
            raise BuildError(
                f"{type(self).__name__} sees the whole past, so its state would grow without end in a stream"
            )
        y, state = self.step_with_grad(x, state)
        return y, None if state is None else state.detach()

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Process the next piece of a stream like `step`, but let gradients flow through the state.

        Here the state may grow with the stream.
        """
        length = self.context_length
        if length == 0:  # the slices below do not work for 0: [-0:] is everything
            return self(x), None
        past = x[:, :0] if state is None else state
        if length is not None:
            past = past[:, max(0, past.shape[1] - length) :]
        seen = torch.cat([past, x], 1)
        return self.forward_with_past(x, past), seen if length is None else seen[:, -length:]

    @property
    def last_map(self) -> nn.Linear | None:
        """Return the linear map that ends the block (its attribute `output` or `outer`), or None."""
        named = (getattr(self, name, None) for name in ("output", "outer"))
        return next((found for found in named if isinstance(found, nn.Linear)), None)

    def after_optimiser_step(self) -> None:
        """Update cached values that the block has computed from its weights.

        Trainers call this after every optimiser step and after loading weights.
        """

    def penalty(self) -> Tensor | None:
        """Return a scalar that training adds to the task's loss, or None if there is none."""
        return None


def check_sequences(x: object, mask: object, name: str = "x", mask_name: str = "mask") -> None:
    """Raise InputError unless x is (batch, length, width), and the mask fits to it.

    A mask is booleans (batch, length). In each row, at least one valid position comes first, and padding
    follows. The numbers of a mask are read only on a CPU, and not in a compiled program:
    elsewhere, to read them would delay the computation. There, outputs are undefined for any other padding.
    """
    if not isinstance(x, Tensor) or x.dim() != 3 or not x.shape[1]:
        got = f"a tensor of shape {tuple(x.shape)}" if isinstance(x, Tensor) else describe_value(x)
        raise InputError(f"{name}: expected (batch, length, width), with a length of at least 1, got {got}")
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        is_tensor = isinstance(mask, Tensor)
        got = f"{mask.dtype} of shape {tuple(mask.shape)}" if is_tensor else describe_value(mask)
        expected = f"torch.bool of shape {tuple(x.shape[:2])}, true at valid positions and false at padding"
        raise InputError(f"{mask_name}: expected {expected}, got {got}")
    if mask.device.type != "cpu" or torch.compiler.is_compiling():
        return
    fits = mask[:, 0] & (mask[:, 1:] <= mask[:, :-1]).all(1)
    if not fits.all():
        row = int(fits.int().argmin())
        shown = "".join("x" if each else "." for each in mask[row, :32].tolist())
        raise InputError(
            f"{mask_name}: expected in each row one or more valid positions (x), and then only padding (.), "
            f"got {shown}{' …' if mask.shape[1] > 32 else ''} in row {row}; to move padding to the end, use "
            f"{name}.take_along_dim({mask_name}.argsort(dim=1, descending=True, stable=True)[..., None], 1)"
        )


BLOCKS: Registry[type[Block]] = Registry("module of block")
BlockT = TypeVar("BlockT", bound=type[Block])
ClassT = TypeVar("ClassT", bound=type[nn.Module])


def register_module(registry: Registry[Any], base: type, name: str, cls: ClassT) -> ClassT:
    """Register a class as a block's module; raise PluginError for a taken name or an incomplete class."""
    check_part(contract_faults(cls, base))
    registry.register(name, cls, own=cls.__module__.startswith(f"{OWN}."))
    return cls


def register_block(
    name: str,
    *,
    parameters: Sequence[Parameter] | None = None,
    reach: Callable[[Settings, CostContext], Reach] | None = None,
    channelwise: bool = False,
    summary: str = "",
    equation: str = "",
    source: str = "",
    check: Callable[[Settings], str | None] | None = None,
    package: str | None = None,
) -> Callable[[BlockT], BlockT]:
    """Return a decorator that registers a class as the module of the named block.

    With `parameters`, which may be empty, the block is a new one, as in a plug-in. Its costs are measured.
    Without a `reach`, the block is assumed to see the whole sequence, or the whole past in a causal model. A
    `channelwise` block sees no other position. `check` returns a fault of the arguments in combination, or
    None. A block that builds layers of another `package` also takes the arguments of the layer, its FLOPs
    leave out the package's kernels, and `count_cached(length)` may count what generation keeps.

    Raise PluginError for a taken name, a class that is not a Block, and missing or invalid parameters.
    """
    if parameters is None:
        if lookup(name) is None:
            wanted = "expected parameters, or parameters=() for a block without any"
            raise PluginError(f"block '{name}': {wanted}; got none")
        return lambda cls: register_module(BLOCKS, Block, name, cls)

    def register_new(cls: BlockT) -> BlockT:
        kinds = get_args(ParameterKind)
        faults = [
            f"parameter '{each.name}' of block '{name}': expected one of the kinds {', '.join(kinds)}, "
            f"got '{each.kind}'{nearest_hint(each.kind, kinds)}"
            for each in parameters
            if each.kind not in kinds
        ]
        check_part(faults + (contract_faults(cls, Block) or _constructor_faults(name, cls, parameters)))
        spec = Spec(
            name=name,
            role=Role.CHANNEL if channelwise else Role.MIXER,
            parameters=tuple(parameters),
            summary=summary or (cls.__doc__ or name).strip().splitlines()[0],
            equation=equation,
            source=source,
            reach=_stated_reach(name, cls, reach) if reach else sees_itself if channelwise else sees_unstated,
            window=_measured_state(name, cls) if cls.state_is_bounded else None,
            check=check,
            package=package,
        )
        register(spec)
        return register_module(BLOCKS, Block, name, cls)

    return register_new


def _constructor_faults(name: str, cls: type[Block], parameters: Sequence[Parameter]) -> list[str]:
    """Return a fault for each argument that `Block.build` gives but the constructor lacks."""
    taken, given = signature(cls).parameters, ("width", "causal", *(each.name for each in parameters))
    if (
        "context" in taken
        or any(each.kind is each.VAR_KEYWORD for each in taken.values())
        or cls.build.__func__ is not Block.build.__func__  # it gives other arguments
    ):
        return []
    others = [each for each in taken if each not in given]
    return [
        f"{cls.__name__}.__init__: expected an argument '{each}' for block '{name}'{hint(each, others)}"
        for each in given
        if each not in taken
    ]


def _stated_reach(
    name: str, cls: type[Block], reach: Callable[[Settings, CostContext], Reach]
) -> Callable[[Settings, CostContext], Reach]:
    """Let a fault in a reach become a PluginError."""

    def stated(settings: Settings, context: CostContext) -> Reach:
        with plugin_errors("reach of block", name, cls):
            found: object = reach(settings, context)
            if not isinstance(found, Reach):
                raise TypeError(f"expected Reach(left=…, right=…), got {describe_value(found)}")
        return found

    return stated


def _measured_state(name: str, cls: type[Block]) -> Callable[[Settings, CostContext], int]:
    """Return a function that measures a block's state in a stream, whose size must not change."""

    def window(settings: Settings, context: CostContext) -> int:
        # on the meta device: the shape is enough, so nothing is computed
        with plugin_errors("block", name, cls), torch.device("meta"):
            block = cls.build(settings, Context(config=context.config))
            found = block.step_with_grad(torch.zeros(1, 1, context.width), None)
            if not isinstance(found, tuple) or len(found) != 2:
                raise TypeError(f"step_with_grad: expected (outputs, state), got {describe_value(found)}")
            if not isinstance(state := found[1], Tensor | None):
                got = f"got {with_article(type(state).__name__)}: torch.cat can join its parts"
                raise TypeError(f"step_with_grad: expected a state that is one tensor or None, {got}")
        return 0 if state is None else state.numel()

    return window


def build_block(node: nodes.BlockNode, context: Context) -> Block:
    """Build the module of one block of a recipe.

    Raise BuildError for a block without a module, and PluginError if a plug-in's constructor raises or reuses
    a module.
    """
    spec, cls = lookup(node.name), BLOCKS.get(node.name)
    if spec is None or cls is None:
        raise BuildError(f"block '{node.name}' has no registered module")
    settings = spec.settings(node)
    build = partial(cls.build, settings, context)
    if SPECS.owner(node.name) == OWN:
        block = build()
    else:
        block = build_plugin_part(SPECS, node.name, cls, build, context.shared)
    if block.context_length is None:
        sees = spec.reach(settings, CostContext(config=context.config, length=1))
        block.context_length = None if math.isinf(sees.left) else int(sees.left)
    block.recipe = render(node)
    return block


@dataclass(frozen=True, slots=True)
class StreamState:
    """The state of a model between two pieces of a batch of streams.

    `past_length` is the number of positions that were read. `block_states` has an entry for every application
    of a block, in order; it is empty at first.
    """

    past_length: int = 0
    block_states: tuple[Tensor | None, ...] = ()


def split_streams(streams: Sequence[StreamState], parts: int) -> list[StreamState]:
    """Redistribute the streams of several batches over `parts` batches.

    The states are joined along the batch dimension, and `tensor_split` divides the result.
    """
    if len(streams) == parts:
        return list(streams)
    first, columns = streams[0], zip(*(stream.block_states for stream in streams), strict=True)
    together = [
        None if column[0] is None else torch.cat([each for each in column if each is not None])
        for column in columns
    ]
    split = [(None,) * parts if each is None else each.tensor_split(parts) for each in together]
    if not split:  # no block has a state
        return [first] * parts
    return [StreamState(first.past_length, states) for states in zip(*split, strict=True)]


class StreamChunk:
    """The states of a model's blocks while the model processes one piece of a batch of streams.

    It has the states before the piece, and collects the states after it. Gradients only pass through states
    `with_grad`; a state may then grow with the sequence. With `zero_past`, zero vectors fill the past of each
    block up to its context length.
    """

    def __init__(
        self, block_states: tuple[Tensor | None, ...], *, with_grad: bool = False, zero_past: bool = False
    ) -> None:
        self._before = block_states
        self._kept: list[Tensor | None] = []
        self._with_grad = with_grad
        self._zero_past = zero_past

    def apply(self, x: Tensor, block: Block) -> Tensor:
        """Apply `block`, the next one of the model, to x (batch, length, width).

        The block continues from its state after the previous piece. Keep its new state for `next_states`.
        """
        kept = self._before[len(self._kept)] if self._before else None
        if self._zero_past and block.context_length:
            kept = x[:, :0] if kept is None else kept
            kept = functional.pad(kept, (0, 0, max(0, block.context_length - kept.shape[1]), 0))
        y, keep = (block.step_with_grad if self._with_grad else block.step)(x, kept)
        self._kept.append(keep)
        return y

    def next_states(self) -> tuple[Tensor | None, ...]:
        """Return the states of all blocks after this piece."""
        return tuple(self._kept)
