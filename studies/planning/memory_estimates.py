"""The memory that a trial needs for training and tests."""

from __future__ import annotations

from dataclasses import dataclass

from ..resolve.costs import analysis, longest_tokens, parameter_count
from ..schema.settings import TrialSettings

GPU_CONTEXT = 600 * 2**20
"""The GPU memory that a process takes before its first tensor: CUDA's context and torch's libraries."""

MAX_DOUBLINGS = 5
"""The maximum number of times that a batch's parts are doubled before a trial without enough memory fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMemory:
    """The bytes that a training step needs, by purpose, within about 20 percent.

    `weights` has the weights, their gradients and the optimiser's state, counted as Adam's, and copies of the
    weights. `activations` has what the `sequences` that are computed at once need. With `equal_parts` a batch
    splits only into parts of equally many sequences.
    """

    tokens: int
    sequences: int
    equal_parts: bool
    weights: int
    activations: int

    @property
    def total(self) -> int:
        """The peak memory of a step in bytes."""
        return self.in_parts(1)

    def parts_that_fit(self, device_bytes: int) -> int | None:
        """Return into how many parts a batch must be split to fit on a device; None if it never fits.

        The number of parts is a power of two from 1 to 2 ** MAX_DOUBLINGS.
        """
        for parts in (1 << doublings for doublings in range(MAX_DOUBLINGS + 1)):
            if fits(self.in_parts(parts), device_bytes):
                return parts
            if self.sequences < 2 * parts or (self.sequences % (2 * parts) and self.equal_parts):
                return None
        return None

    def in_parts(self, parts: int) -> int:
        """Return the peak bytes of a step whose batch is split into parts, computed one after another."""
        largest = -(-self.activations * -(-self.sequences // parts) // self.sequences)
        return self.weights + largest


def step_memory(settings: TrialSettings, tokens: int | None = None) -> StepMemory:
    """Return the memory of a training step on sequences of this length.

    The default is the longest training sequence. Separate documents are counted twice, since they have less
    padding than tokens.
    """
    train = settings.train
    tokens = longest_tokens(settings) if tokens is None else tokens
    sequences = -(-train.batch_size // train.accumulate)
    separate = getattr(settings.task, "separate_documents", False)
    found = analysis(settings, tokens)
    held = found.memory(2 * sequences if separate else sequences)
    copies = bool(train.average) + (train.keep == "best")
    return StepMemory(
        tokens=tokens,
        sequences=sequences,
        equal_parts=bool(train.loss_terms),
        weights=held.parameters + 4 * copies * found.parameters,
        activations=held.activations + held.temporary,
    )


def last_state_bytes(settings: TrialSettings) -> int:
    """Return about how many bytes the last state of a training has on disk, with Adam as the optimiser."""
    copies = bool(settings.train.average) + (settings.train.keep == "best")
    return _STATE_BYTES + 4 * (3 + copies) * parameter_count(settings)


_STATE_BYTES = 30_000
"""About the bytes of a last state besides its tensors: their names, the metrics of epochs, the sampler."""


def fits(held: int, device_bytes: int) -> bool:
    """Return whether this memory fits on a device. A tenth of the device is kept free."""
    return held + GPU_CONTEXT <= 0.9 * device_bytes


def trials_that_fit(held: StepMemory, device_bytes: int) -> int:
    """Return how many trials fit on a GPU, each in its own process; a tenth of the memory is kept free.

    Each needs the step memory `held`.
    """
    return int(0.9 * device_bytes / (held.total + GPU_CONTEXT))
