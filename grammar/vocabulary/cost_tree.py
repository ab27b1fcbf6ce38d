"""The parts of a model and what each costs: how costs add up in series, side by side, and in copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise

from .spec import NO_WORKING, Cost, Reach, Working

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

    `activations` are what the forward pass keeps for the backward pass. `kernels` are what fused kernels of
    recurrent blocks keep beside that, `working` is what the block that holds most for a while adds to what is
    still kept then.
    """

    parameters: int
    activations: int
    logits: int
    kernels: int = 0
    working: int = 0

    @property
    def gradients(self) -> int:
        """One number for each parameter."""
        return self.parameters

    @property
    def optimizer(self) -> int:
        """Adam's two moments of each parameter."""
        return 2 * self.parameters

    @property
    def computing(self) -> int:
        """The most that is held at once of a batch.

        That is where the loss's gradient reaches the logits, or where a block holds most.
        """
        return self.activations + self.kernels + max(2 * self.logits, self.working)

    @property
    def peak(self) -> int:
        """An estimate of the most that is held at once, weights and all that is kept of them included."""
        return self.parameters + self.gradients + self.optimizer + self.computing


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPart:
    """A part of a model: what it costs on one sequence, and its own parts.

    Copies hold the parts of one and the figures of all.
    A sub-layer's figures include its normalisation; what is `shared` is not among `parameters`. In a whole
    model parts follow others by their labels, the one whose stream goes on first; None is the part before.
    A sub-layer that keeps its input alone is `again` while its gradients are computed.
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
    kernels: int = 0
    working: Working = NO_WORKING
    saves_input: bool = False
    saves_output: bool = False
    shared: Mapping[str, int] = field(default_factory=dict)
    predecessors: tuple[str, ...] | None = None
    parts: tuple[ModelPart, ...] = ()
    again: ModelPart | None = None

    def checkpointed(self) -> ModelPart:
        """A sub-layer that keeps its input alone, and computes the rest again in the backward pass."""
        return replace(
            self,
            saved=0,
            saved_once=0,
            kernels=0,
            working=NO_WORKING,
            saves_input=True,
            saves_output=False,
            again=self,
        )

    def activation_bytes(self, batch: int) -> int:
        """The bytes that training keeps of `batch` sequences, without an input that others may keep too."""
        return 4 * (batch * self.saved + self.saved_once)

    def working_bytes(self, batch: int) -> int:
        """The bytes that `batch` sequences hold at their most, beside all that training keeps of them in it.

        Gradients go from the last part to the first: what is kept of later ones is given up by then. Of
        copies that is so in the last one. What is computed again is held then, too.
        """
        if self.again is not None:
            return self.again.pass_bytes(batch) + self.again.working_bytes(batch)
        most, given_up = self.working.bytes(batch), 0
        for part in reversed(self.parts):
            most = max(most, part.working_bytes(batch) - given_up)
            given_up += part.pass_bytes(batch)
        return most

    def pass_bytes(self, batch: int) -> int:
        """The bytes that training keeps of `batch` sequences, those of fused kernels among them."""
        return self.activation_bytes(batch) + 4 * batch * self.kernels

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
        kernels=count * one.kernels,
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
        kernels=total.kernels,
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
        kernels=sum(part.kernels for part in parts),
        shared={key: count for part in parts for key, count in part.shared.items()},
        parts=parts,
    )
