"""What one replica computes of each batch, and how it has the gradients of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, distributed, nn

from ...studies.schema.settings import TrialSettings

BUCKET = 2**23
"""About so many numbers are added across the replicas at once: enough to make use of what connects them."""


def spread(settings: TrialSettings, replicas: int) -> TrialSettings:
    """The settings of a trial whose batches are in so many times as many parts, for as many replicas."""
    train = settings.train
    changed = train.model_copy(update={"accumulate": train.accumulate * replicas})
    return settings.model_copy(update={"train": changed})


class Share:
    """The parts of each batch that are of the replica `rank`; `begin` has the others begin a step, too."""

    def __init__(self, rank: int, parts: int, begin: Callable[[], None]) -> None:
        self.parts = range(rank * parts, (rank + 1) * parts)
        self._begin = begin

    def begin_step(self) -> None:
        """Have all replicas begin the next step."""
        self._begin()

    @torch.no_grad()
    def sum_gradients(self, model: nn.Module, loss: Tensor) -> Tensor:
        """Give the model the gradients of the whole batch; its loss, where `loss` is that of `parts`."""
        total = loss.reshape(1).clone()
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        for bucket in _buckets([total, *gradients]):
            _sum_across_replicas(bucket)
        return total.reshape(())


class ShardedShare(Share):
    """As `Share`, of weights whose gradients are added as they are made."""

    @torch.no_grad()
    def sum_gradients(self, model: nn.Module, loss: Tensor) -> Tensor:
        """The loss of the whole batch, where `loss` is that of `parts`."""
        total = loss.reshape(1).clone()
        distributed.all_reduce(total)
        return total.reshape(())


def _sum_across_replicas(bucket: Sequence[Tensor]) -> None:
    """Give each of the tensors its sum over all replicas; a single one needs no copy meanwhile."""
    if len(bucket) == 1 and bucket[0].is_contiguous():
        distributed.all_reduce(bucket[0])
        return
    together = torch.cat([each.flatten() for each in bucket])
    distributed.all_reduce(together)
    for each, summed in zip(bucket, together.split([each.numel() for each in bucket]), strict=True):
        each.copy_(summed.view_as(each))


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """The tensors, those that are a bucket's worth alone, the others in their order, some at a time."""
    bucket, numbers = list[Tensor](), 0
    for tensor in tensors:
        if tensor.numel() >= BUCKET:
            yield [tensor]
            continue
        bucket.append(tensor)
        numbers += tensor.numel()
        if numbers >= BUCKET:
            yield bucket
            bucket, numbers = [], 0
    if bucket:
        yield bucket
