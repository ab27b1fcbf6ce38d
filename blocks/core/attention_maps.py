"""Recording of the attention weights that blocks use.

A block that mixes positions by a softmax passes its weights to `record_weights`. Outside of `recording` this
does nothing, and blocks may use fused kernels, which never make the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor, nn

from .block import Block


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AttentionMap:
    """The weights with which the heads of a block attend, for each query.

    `weights` (batch, heads, queries, keys) are those that multiply the values: after positions, masks, caps,
    norms of heads and learnt spans. They add up to 1 over the keys, except in `diff_attn` and below a keyless
    query. Hidden keys have the weight 0, and rows of padding are arbitrary. The last `persistent` keys are
    trained vectors, not positions. `layer` numbers the blocks with weights from 1, in the order of
    computation; a block with two softmaxes has two maps of one layer.
    """

    layer: int
    block: str
    weights: Tensor
    persistent: int = 0

    def __repr__(self) -> str:
        extra = f", {self.persistent} persistent" if self.persistent else ""
        return f"AttentionMap(layer {self.layer}: {self.block}, {tuple(self.weights.shape)}{extra})"


class _Recorder:
    """The maps of one call of a model, and the block that is computed at the moment."""

    def __init__(self) -> None:
        self.maps: list[AttentionMap] = []
        self.block, self.calls, self.last = "", 0, 0

    def enter(self, block: Block, _inputs: object) -> None:
        """Note which block is computed from now on."""
        self.block, self.calls = block.recipe, self.calls + 1

    def add(self, weights: Tensor, persistent: int) -> None:
        """Add a map; the layers of blocks without weights are not counted."""
        layer = self.maps[-1].layer if self.maps else 0
        layer += self.calls != self.last
        self.last = self.calls
        found = weights.detach().clone()
        self.maps.append(AttentionMap(layer=layer, block=self.block, weights=found, persistent=persistent))


_recorder: _Recorder | None = None


def is_recording() -> bool:
    """Return whether weights are recorded, so that they must be made."""
    return _recorder is not None


def record_weights(weights: Tensor, *, persistent: int = 0) -> None:
    """Record weights (batch, heads, queries, keys). The last `persistent` keys are trained vectors."""
    if _recorder is not None:
        _recorder.add(weights, persistent)


@contextmanager
def recording(model: nn.Module) -> Iterator[list[AttentionMap]]:
    """Record the weights of a model's blocks within the context. The list is filled by calls of the model."""
    global _recorder  # noqa: PLW0603 -- one model records at a time
    before, _recorder = _recorder, _Recorder()
    hooks = [
        each.register_forward_pre_hook(_recorder.enter) for each in model.modules() if isinstance(each, Block)
    ]
    try:
        yield _recorder.maps
    finally:
        _recorder = before
        for hook in hooks:
            hook.remove()
