"""The parts of a model with what each costs, and the memory of a training step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ..vocabulary.spec import Reach

NO_REACH = Reach(left=0, right=0)

PREVIOUS_PART, SOURCE_EMBEDDING, TARGET_EMBEDDING = "", "source embedding", "target embedding"
"""What a part of a model can follow, beside other parts by name: the part before it, and the inputs."""


class PartKind(StrEnum):
    """The place of a part in its recipe, so that it can be drawn."""

    FRAME = "frame"  # stands around the body
    SHARED = "shared"  # parameters that several blocks have in common
    BLOCK = "block"
    SUM = "sum"
    SERIES = "series"
    COPIES = "copies"
    TRANSDUCER = "whole"  # a model of a source and a target, taken apart
    STACK = "stack"  # a stack within it, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """The bytes of a training step with Adam, numbers of four bytes.

    `activations` are kept for the backward pass. `step_peak` is the most that the step allocates at once,
    gradients among it, beside the weights and their optimiser.
    """

    parameters: int
    activations: int
    logits: int
    step_peak: int

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
        """Return the most that a batch holds at once beside the gradients of all parameters."""
        return max(0, self.step_peak - self.gradients)

    @property
    def peak(self) -> int:
        """Return an estimate of the most that is held at once, with weights and their optimiser."""
        return self.parameters + self.gradients + self.optimizer + self.computing


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPart:
    """A part of a model: what it costs on one sequence, and its own parts.

    Copies hold the parts of one and the figures of all. A sub-layer's figures include its normalisation;
    `shared` numbers are not among `parameters`. In a whole model parts follow others by their labels, the
    main stream first; None is the part before. `modules` compute the part, and `share` of what they keep for
    the backward pass is its own, `kept` bytes in a tree that was made for a batch.
    """

    label: str
    kind: PartKind = PartKind.FRAME
    parameters: int = 0
    flops: int = 0
    reach: Reach = NO_REACH
    state: int = 0
    window: int = 0
    kept: int = 0
    shared: Mapping[str, int] = field(default_factory=dict)
    predecessors: tuple[str, ...] | None = None
    parts: tuple[ModelPart, ...] = ()
    modules: tuple[str, ...] = ()
    share: float = 1.0


def sum_parts(
    label: str, kind: PartKind, parts: tuple[ModelPart, ...], reach: Reach, modules: tuple[str, ...] = ()
) -> ModelPart:
    """Return the parts as one; numbers that several of them share are held once."""
    return ModelPart(
        label=label,
        kind=kind,
        parameters=sum(part.parameters for part in parts),
        flops=sum(part.flops for part in parts),
        reach=reach,
        state=sum(part.state for part in parts),
        window=sum(part.window for part in parts),
        shared={key: count for part in parts for key, count in part.shared.items()},
        parts=parts,
        modules=modules,
    )


def series(label: str, parts: tuple[ModelPart, ...]) -> ModelPart:
    """Return parts one after another: each reaches further than the one before."""
    left, right = sum(part.reach.left for part in parts), sum(part.reach.right for part in parts)
    return sum_parts(label, PartKind.SERIES, parts, Reach(left=left, right=right))
