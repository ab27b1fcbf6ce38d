"""The parts of a model and what each costs: how costs add up in series, side by side, and in copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise

from .spec import Cost, Reach

_NO_REACH = Reach(left=0, right=0)

PREVIOUS_PART, SOURCE_EMBEDDING, TARGET_EMBEDDING = "", "source embedding", "target embedding"
"""What a part of a model can follow, beside other parts by name: the part before it, and the inputs."""


class PartKind(StrEnum):
    """What a part is in the recipe, so that it can be drawn."""

    FRAME = "frame"  # what stands around the body
    SHARED = "shared"  # parameters that several blocks have in common
    BLOCK = "block"
    SUM = "sum"
    SERIES = "series"
    COPIES = "copies"
    TRANSDUCER = "whole"  # a model of a source and a target, taken apart
    STACK = "stack"  # a stack within it, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """The bytes that a training step with Adam holds, numbers of four bytes.

    `activations` are what the forward pass keeps for the backward pass. `working` is what the part that keeps
    most needs for the gradients of it: as much again.
    """

    parameters: int
    activations: int
    logits: int
    working: int = 0

    @property
    def gradients(self) -> int:
        """Return the bytes of one number for each parameter."""
        return self.parameters

    @property
    def optimizer(self) -> int:
        """Return the bytes of Adam's two moments of each parameter."""
        return 2 * self.parameters

    @property
    def computing(self) -> int:
        """Return the most that a batch holds at once: what is kept, and gradients of it or of logits."""
        return self.activations + max(2 * self.logits, self.working)

    @property
    def peak(self) -> int:
        """Return an estimate of the most that is held at once, with weights and their optimiser."""
        return self.parameters + self.gradients + self.optimizer + self.computing


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPart:
    """A part of a model: what it costs on one sequence, and its own parts.

    Copies hold the parts of one and the figures of all. A sub-layer's figures include its normalisation;
    `shared` numbers are not among `parameters`. In a whole model parts follow others by their labels, the
    main stream first; None is the part before. A sub-layer that keeps only its input is computed `again` for
    its gradients.
    """

    label: str
    kind: PartKind = PartKind.FRAME
    parameters: int
    flops: int
    reach: Reach = _NO_REACH
    state: int = 0
    window: int = 0
    saved: int = 0
    saved_once: int = 0
    saves_input: bool = False
    saves_output: bool = False
    shared: Mapping[str, int] = field(default_factory=dict)
    predecessors: tuple[str, ...] | None = None
    parts: tuple[ModelPart, ...] = ()
    again: ModelPart | None = None

    def checkpointed(self) -> ModelPart:
        """Return the sub-layer when it keeps only its input, and computes the rest again."""
        return replace(self, saved=0, saved_once=0, saves_input=True, saves_output=False, again=self)

    def activation_bytes(self, batch: int) -> int:
        """Return the bytes that training keeps of `batch` sequences, without a shared input."""
        return 4 * (batch * self.saved + self.saved_once)

    def working_bytes(self, batch: int) -> int:
        """Return the bytes for gradients of the part that keeps most, and for what is computed again."""
        if self.again is not None:
            return self.again.activation_bytes(batch) + self.again.working_bytes(batch)
        if self.parts:
            return max(part.working_bytes(batch) for part in self.parts)
        return self.activation_bytes(batch)

    def with_saved_input(self, input_size: int) -> ModelPart:
        """The part with its input, `input_size` numbers, among what it saves, if it saves it at all."""
        if not self.saves_input:
            return self
        parts = self.parts
        if parts and self.kind is not PartKind.SUM:
            parts = (parts[0].with_saved_input(input_size), *parts[1:])
        return replace(self, saved=self.saved + input_size, saves_input=False, parts=parts)


def with_input_after(previous: ModelPart, part: ModelPart, input_size: int) -> ModelPart:
    """The part with its input, `input_size` numbers, among what it saves, unless the one before saves it."""
    return replace(part, saves_input=False) if previous.saves_output else part.with_saved_input(input_size)


def compose_series(label: str, parts: tuple[ModelPart, ...], input_size: int) -> ModelPart:
    """Parts one after another: what one reaches, the next one reaches further.

    Each but the first saves its own input, `input_size` numbers.
    """
    left = sum(part.reach.left for part in parts)
    right = sum(part.reach.right for part in parts)
    parts = (parts[0], *(with_input_after(before, part, input_size) for before, part in pairwise(parts)))
    total = _sum_costs(label, PartKind.SERIES, parts, Reach(left=left, right=right))
    return replace(total, saves_input=parts[0].saves_input, saves_output=parts[-1].saves_output)


def compose_sum(label: str, parts: tuple[ModelPart, ...]) -> ModelPart:
    """The parts of a sum: it reaches as far as the furthest of them, and saves its input once."""
    left = max(part.reach.left for part in parts)
    right = max(part.reach.right for part in parts)
    total = _sum_costs(label, PartKind.SUM, parts, Reach(left=left, right=right))
    return replace(total, saves_input=any(part.saves_input for part in parts))


def compose_repeat(
    label: str, one: ModelPart, count: int, parts: tuple[ModelPart, ...], input_size: int
) -> ModelPart:
    """A part applied `count` times, with the parameters of one application; `parts` are those of one."""
    inputs = (count - 1) * input_size if one.saves_input and not one.saves_output else 0
    return replace(
        one,
        label=label,
        kind=PartKind.COPIES,
        flops=count * one.flops,
        reach=Reach(left=count * one.reach.left, right=count * one.reach.right),
        state=count * one.state,
        window=count * one.window,
        saved=count * one.saved + inputs,
        saved_once=count * one.saved_once,
        parts=parts,
    )


def compose_stack(
    label: str, parts: tuple[ModelPart, ...], input_size: int, predecessors: tuple[str, ...]
) -> ModelPart:
    """Parts in series that have a name in a whole model, and what they follow there."""
    return replace(compose_series(label, parts, input_size), kind=PartKind.STACK, predecessors=predecessors)


def total_cost(parts: tuple[ModelPart, ...], outputs: int) -> Cost:
    """What a model costs that gives `outputs` numbers: the sums of its parts; its input is the first's."""
    total = _sum_costs("", PartKind.TRANSDUCER, parts, _NO_REACH)
    return Cost(
        parameters=total.parameters,
        flops=total.flops,
        shared=total.shared,
        state=total.state,
        window=total.window,
        saved=total.saved,
        saved_once=total.saved_once,
        saves_input=parts[0].saves_input,
        outputs=outputs,
        parts=parts,
    )


def _sum_costs(label: str, form: PartKind, parts: tuple[ModelPart, ...], reach: Reach) -> ModelPart:
    """Parts with all that they cost; what several share is held once."""
    return ModelPart(
        label=label,
        kind=form,
        parameters=sum(part.parameters for part in parts),
        flops=sum(part.flops for part in parts),
        reach=reach,
        state=sum(part.state for part in parts),
        window=sum(part.window for part in parts),
        saved=sum(part.saved for part in parts),
        saved_once=sum(part.saved_once for part in parts),
        shared={key: count for part in parts for key, count in part.shared.items()},
        parts=parts,
    )
