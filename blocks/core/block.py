"""What a block is, what it is told about its surroundings, and the registry of modules by block name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, cast

import torch
from torch import Tensor, nn

from ...errors import ActivememError
from ...grammar import nodes
from ...grammar.model_config import ModelConfig
from ...grammar.vocabulary.registry import lookup
from ...grammar.vocabulary.spec import CostContext, Settings
from ...plugins import OpenRegistry
from .registry import Registry

ModuleT = TypeVar("ModuleT", bound=nn.Module)


class BuildError(ActivememError):
    """A recipe that is well formed but cannot become a module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where a block is built: what the whole model has in common, and the parts that its blocks share."""

    config: ModelConfig
    shared: dict[Hashable, nn.Module] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """The width of the model."""
        return self.config.d_model

    @property
    def causal(self) -> bool:
        """Whether the future is hidden."""
        return self.config.causal

    def share(self, key: Hashable, make: Callable[[], ModuleT]) -> ModuleT:
        """The model's one module under this key, made when it is first asked for."""
        if key not in self.shared:
            self.shared[key] = make()
        return cast("ModuleT", self.shared[key])


class Block(nn.Module, ABC):
    """A map of sequences to sequences of the same shape, from its parameters, its input and its mask alone.

    What stands at masked positions of the input never reaches a valid position of the output.
    `context_length` is how many past inputs a causal stream must hold for exact outputs, None where there is
    no bound; `build_block` takes it from the reach that the specification states. A block that sees all of
    the past through a state of one size overrides `step_with_grad` and says that its `state_is_bounded`.
    """

    context_length: int | None = None
    state_is_bounded: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def build(cls, settings: Settings, context: Context) -> Block:
        """The block with these settings; its weights are drawn later, by its `Initialisable` parts."""

    @abstractmethod
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map (batch, length, width) to the same; `mask` (batch, length) is true on a prefix of each row."""

    def forward_with_past(self, x: Tensor, past: Tensor) -> Tensor:
        """The outputs at x (batch, length, width) that follow the inputs `past` (batch, p, width).

        p is `context_length`, or less where the stream began p positions ago. Blocks of causal models only.
        """
        return self(torch.cat([past, x], 1))[:, past.shape[1] :]

    def step(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """One piece of a stream: the outputs at x, and the state for the next piece.

        A state has the batch first and no gradient; None stands before the first piece. Raises BuildError
        where the state would grow with the stream.
        """
        if self.context_length is None and not self.state_is_bounded:
            raise BuildError(f"{type(self).__name__} sees all of the past, and a stream has no beginning")
        y, state = self.step_with_grad(x, state)
        return y, None if state is None else state.detach()

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """As `step`, but with gradients through the state, which may grow with the sequence."""
        length = self.context_length
        if length == 0:
            return self(x), None
        past = x[:, :0] if state is None else state
        if length is not None:
            past = past[:, max(0, past.shape[1] - length) :]
        seen = torch.cat([past, x], 1)
        return self.forward_with_past(x, past), seen if length is None else seen[:, -length:]

    @property
    def last_map(self) -> nn.Linear | None:
        """The map that ends the block, which it has as `output` or `outer`; None where it ends otherwise."""
        named = (getattr(self, name, None) for name in ("output", "outer"))
        return next((found for found in named if isinstance(found, nn.Linear)), None)

    def after_optimiser_step(self) -> None:
        """Take note of new weights: called after every step of the optimiser and when weights are loaded."""

    def penalty(self) -> Tensor | None:
        """A term for the loss beside that of the task, or None."""
        return None


@contextmanager
def told_by_name(registry: OpenRegistry[Any], name: str) -> Iterator[None]:
    """A context in which a plug-in builds what has a name; what it raises becomes a BuildError with both."""
    try:
        yield
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
        raise BuildError(f"{registry.owner(name)}: {registry.kind} '{name}': {fault}") from error


BLOCKS = Registry(Block, kind="block", base_path="activemem.blocks.Block")
register_block = BLOCKS.register
"""A decorator that makes a class the module of the block of that name."""

find_block, missing_block_reason = BLOCKS.find, BLOCKS.missing_reason


def build_block(node: nodes.BlockNode, context: Context) -> Block:
    """The module of one block of a recipe; raises BuildError for a block without one."""
    spec, cls = lookup(node.name), find_block(node.name)
    if spec is None or cls is None:
        raise BuildError(missing_block_reason(node.name))
    settings = spec.settings(node)
    block = cls.build(settings, context)
    if block.context_length is None:
        sees = spec.reach(settings, CostContext(config=context.config, length=1))
        block.context_length = None if math.isinf(sees.left) else int(sees.left)
    return block
