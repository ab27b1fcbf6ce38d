"""Which trials cannot take their steps on several devices, told before anything is trained."""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import ActivememError
from ...studies.planning.memory_estimates import FindLongest
from ...studies.resolve.costs import longest_pair
from ...studies.schema.settings import TrialSettings
from ...studies.text.units import format_bytes
from ..training_parts.gradient_measures import GRADIENT_NOISE
from .sharding import must_shard, sharding_faults


class ReplicaError(ActivememError):
    """Trials that cannot take their steps on several devices; the message has all reasons."""

    def __init__(self, devices: int, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)
        head = f"these trials cannot take their steps on {devices} devices"
        super().__init__("\n".join([head, *(f"  {reason}" for reason in self.reasons)]))


def check_replicas(
    all_settings: Iterable[TrialSettings],
    devices: int,
    device_bytes: int | None = None,
    *,
    find_longest: FindLongest = lambda _settings: None,
    checkpoints: bool = False,
) -> None:
    """Raise ReplicaError, with all reasons, if any of these trials cannot train on so many devices.

    Nor where each has so many bytes, if that is known, with activation checkpointing where `checkpoints`.
    """
    if devices == 1:
        return
    reasons = dict[str, None]()
    for settings in all_settings:
        reasons |= dict.fromkeys(replica_faults(settings, devices))
        longest = find_longest(settings)
        if device_bytes is not None and must_shard(
            settings, devices, device_bytes, longest=longest, checkpoints=checkpoints
        ):
            where = f"where not all weights fit on each, with {format_bytes(device_bytes)} free"
            reasons |= dict.fromkeys(f"{each}, {where}" for each in sharding_faults(settings))
    if reasons:
        raise ReplicaError(devices, reasons)


def replica_faults(settings: TrialSettings, devices: int) -> list[str]:
    """Why a trial cannot take its steps on so many devices."""
    train = settings.train
    parts = train.accumulate * devices
    faults: list[str] = []
    each = f"accumulate = {train.accumulate} on {devices} devices"
    if train.batch_tokens is not None:
        tokens = parts * longest_pair(settings)
        if train.batch_tokens < tokens or train.batch_size < parts:
            got = f"got {train.batch_tokens:,} and {train.batch_size:,}"
            room = f"expected at least {tokens:,} tokens and {parts:,} pairs"
            faults.append(f"batch_tokens, batch_size: {room}, as {each} is as many parts, {got}")
    elif train.batch_size < parts:
        faults.append(
            f"batch_size: expected at least {parts}, as {each} is as many parts, got {train.batch_size}"
        )
    if train.loss_terms:
        faults.append("loss_terms: what they add to the loss is known of whole batches only")
    if GRADIENT_NOISE in train.measure:
        faults.append(f"measure: {GRADIENT_NOISE} compares the parts of a batch on one device")
    return faults
