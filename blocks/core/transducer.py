"""Transducers: blocks that read one sequence and write another, symbol by symbol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Self, TypeVar

from torch import Tensor, nn

from ...grammar import nodes
from ...grammar.vocabulary.spec import Settings, lookup
from ...plugins import Registry
from .block import BuildError, Context, check_sequences, register_module

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Base class of a transducer's state between two steps.

    Tensor fields have the batch as their first dimension; states and tuples are nested states; any other
    field is the same for all rows.
    """

    def select_rows(self, index: Tensor) -> Self:
        """Return the state for the rows of the batch at the indices `index`.

        `index` (rows,) gives the new order of the rows. An index may occur more than once.
        """
        return replace(self, **{each.name: _rows(getattr(self, each.name), index) for each in fields(self)})


def _rows(value: ValueT, index: Tensor) -> ValueT:
    match value:
        case Tensor():
            return value[index]  # pyright: ignore[reportReturnType] -- of a tensor
        case State():
            return value.select_rows(index)  # pyright: ignore[reportReturnType] -- of a state
        case tuple():
            return tuple(_rows(one, index) for one in value)  # pyright: ignore[reportReturnType] -- of a tuple
        case _:
            return value


StateT = TypeVar("StateT", bound=State)


class Transducer(nn.Module, ABC, Generic[StateT]):
    """Base class of modules that read a source and write a target step by step.

    `forward` computes all outputs at once, `step` one at a time. Both ways give equal outputs. Output t only
    sees the source and the targets before t. Masked positions of the source or the target never affect a
    valid position of the output. `output_width` is the width of its outputs, and `depends_on_target_length`
    comes from its specification.
    """

    output_width: int
    depends_on_target_length: bool = False

    @abstractmethod
    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()

    def __call__(
        self,
        source: Tensor,
        target: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """Check the arguments as `check_sequences` does, and call `forward`."""
        check_sequences(source, source_mask, "source", "source_mask")
        check_sequences(target, target_mask, "target", "target_mask")
        return self.call_unchecked(source, target, source_mask, target_mask)

    call_unchecked = nn.Module.__call__  # for models

    @abstractmethod
    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """Map source (batch, n, width) and target (batch, m, width) to (batch, m, outputs).

        Position t of the target is the embedded input of output t: the start symbol at position 0, then
        outputs 0 to m - 2. The masks (batch, n) and (batch, m) are true on a prefix of each row.
        """

    @abstractmethod
    def begin(self, source: Tensor, source_mask: Tensor | None, lengths: Tensor) -> StateT:
        """Return the state before the first output.

        The targets have the given `lengths` (batch,). `forward` derives `lengths` from the target's mask. If
        outputs do not depend on the number of outputs, more of them may be requested.
        """

    @abstractmethod
    def step(self, state: StateT, previous: Tensor) -> tuple[Tensor, StateT]:
        """Return the next output (batch, outputs) and state, given the embedding of the output before it."""

    def attention_weights(self, state: StateT) -> Tensor | None:
        """Return the last output's attention weights for the source positions, (batch, n).

        None without attention.
        """
        return None


AnyTransducer = Transducer[Any]
TRANSDUCERS: Registry[type[AnyTransducer]] = Registry("module of transducer")
TransducerT = TypeVar("TransducerT", bound=type[AnyTransducer])


def register_transducer(name: str) -> Callable[[TransducerT], TransducerT]:
    """Return a decorator that registers a class as the module of the named transducer."""
    return lambda cls: register_module(TRANSDUCERS, Transducer, name, cls)


def build_transducer_block(node: nodes.BlockNode, context: Context) -> AnyTransducer:
    """Build the module of a recipe's transducer. Raise BuildError if no module is registered for it."""
    spec, cls = lookup(node.name), TRANSDUCERS.get(node.name)
    if spec is None or cls is None:
        raise BuildError(f"transducer '{node.name}' has no registered module")
    made = cls(spec.settings(node), context)
    made.depends_on_target_length = spec.depends_on_target_length
    return made
