"""Which trials are sharded over their devices, as not all fits on each, and which cannot be."""

from __future__ import annotations

from collections.abc import Iterator

from ...blocks.layers.window_attention import looks_at_weights
from ...studies.planning.memory_estimates import LongestBatch, step_memory
from ...studies.schema.settings import TrialSettings
from ..core.models import outline_model
from ..optimisers.state_size import weight_state

_NUMBER_BY_NUMBER = ("adam", "adamw", "adagrad", "sgd", "lion")
"""The rules that move each number of a weight by itself, so that parts of weights move as the whole."""


def must_shard(
    settings: TrialSettings,
    devices: int,
    device_bytes: int | None,
    *,
    longest: LongestBatch | None = None,
    checkpoints: bool = False,
) -> bool:
    """Whether a step does not fit on each of several devices with all weights, in however many parts.

    The `longest` sequences are those of the data, if they are known. With activation checkpointing where
    `checkpoints`.
    """
    if device_bytes is None or devices == 1:
        return False
    state = weight_state(settings)
    held = step_memory(settings, state=state, longest=longest, checkpoints=checkpoints, device="gpu")
    return held.parts_on_each(devices, device_bytes) is None


def sharding_faults(settings: TrialSettings) -> Iterator[str]:
    """Why a trial cannot have its weights sharded."""
    train = settings.train
    if train.optimizer.name not in _NUMBER_BY_NUMBER:
        rules = ", ".join(_NUMBER_BY_NUMBER)
        yield f"optimizer: expected {rules}, which move each number by itself, got {train.optimizer.name}"
    for key in ("clip_tensor_norm", "clip_step_norm"):
        if getattr(train, key) is not None:
            yield f"{key}: a replica has no whole tensor whose norm could be taken"
    if train.measure:
        yield f"measure: a replica has no whole gradients for {', '.join(train.measure)}"
    if train.compile:
        yield "compile: layers are gathered between pieces that would be compiled as one"
    if train.sampling:
        yield "sampling: guesses are asked for symbol by symbol, outside of the pass that gathers layers"
    if any(map(looks_at_weights, outline_model(settings).modules())):
        yield "recipe: a block looks at its weights between steps, as learnt spans do"
