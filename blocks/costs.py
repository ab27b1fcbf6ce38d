"""Costs of a block, read from its module on the meta device, where only shapes are computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from ..grammar.model_config import ModelConfig
from ..grammar.nodes import BlockNode
from ..grammar.vocabulary.registry import spec_of
from ..grammar.vocabulary.spec import Cost, CostContext
from .core.block import Block, Context, build_block
from .layers.window_attention import AdaptiveSpans

_NUMBER = 4
"""The bytes of a number."""

_BATCHES = (2, 3)
"""Two sizes of a batch tell what each sequence costs from what is done once for a batch."""

_SHORT_LENGTHS = (4, 5, 6)
"""A loop over positions is measured at these lengths; its cost is a polynomial of degree two at most."""


def measure_parameters(node: BlockNode, config: ModelConfig) -> Cost:
    """Return the parameters of a block and what it shares with others of its model."""
    return _count_parameters(*_build(node, config))


def measure_block(node: BlockNode, config: ModelConfig, length: int, past: int) -> Cost:
    """Return all costs of a block on a sequence of `length`, behind `past` positions of a stream.

    Only the positions that a block computes by itself in a stream count: what it computes again of the past
    does not.
    """
    block, context = _build(node, config)
    known = _count_parameters(block, context)
    spec, surroundings = spec_of(node.name), CostContext(config=config, length=length)
    sees = spec.reach(spec.settings(node), surroundings).left
    if type(block).forward_with_past is Block.forward_with_past or math.isinf(sees):
        past = 0
    past = min(past, int(sees)) if past else 0
    if _has_loops(block) and length > _SHORT_LENGTHS[-1]:
        points = [_measure(block, each, past, config.d_model) for each in _SHORT_LENGTHS]
        found = _extrapolate(points, length)
    else:
        found = _measure(block, length, past, config.d_model)
    return Cost(
        parameters=known.parameters,
        shared=known.shared,
        flops=round(found.flops),
        saved=round(found.saved),
        saved_once=round(found.saved_once),
        saves_input=found.saves_input,
        saves_output=found.saves_output,
    )


def _build(node: BlockNode, config: ModelConfig) -> tuple[Block, Context]:
    context = Context(config=config)
    with torch.device("meta"):
        block = build_block(node, context).train()
    for module in block.modules():
        if isinstance(module, AdaptiveSpans):
            module.note(1.0)  # as long as spans can become
    return block, context


def _count_parameters(block: Block, context: Context) -> Cost:
    shared = {str(key): _numbers(module) for key, module in context.shared.items()}
    return Cost(parameters=_numbers(block) - sum(shared.values()), shared=shared)


def _numbers(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _has_loops(block: Block) -> bool:
    return any(isinstance(module, Block) and module.loops_over_positions for module in block.modules())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """What one forward pass costs: of a batch, or of each of its sequences and `saved_once` of all."""

    flops: float
    saved: float
    saved_once: float = 0.0
    saves_input: bool
    saves_output: bool


def _measure(block: Block, length: int, past: int, width: int) -> _Pass:
    """Return the cost of each sequence, from batches of two sizes."""
    (few, less), (many, more) = ((batch, _run(block, batch, length, past, width)) for batch in _BATCHES)
    saved = (more.saved - less.saved) / (many - few)
    return _Pass(
        flops=(more.flops - less.flops) / (many - few),
        saved=saved,
        saved_once=max(0.0, less.saved - few * saved),
        saves_input=less.saves_input,
        saves_output=less.saves_output,
    )


def _extrapolate(points: list[_Pass], length: int) -> _Pass:
    """Return the cost at a length by the parabola through the costs at short ones."""
    first, second, third = _SHORT_LENGTHS
    weights = (
        (length - second) * (length - third) / ((first - second) * (first - third)),
        (length - first) * (length - third) / ((second - first) * (second - third)),
        (length - first) * (length - second) / ((third - first) * (third - second)),
    )

    def at(value: Callable[[_Pass], float]) -> float:
        return sum(weight * value(point) for weight, point in zip(weights, points, strict=True))

    return _Pass(
        flops=at(lambda point: point.flops),
        saved=at(lambda point: point.saved),
        saved_once=at(lambda point: point.saved_once),
        saves_input=points[-1].saves_input,
        saves_output=points[-1].saves_output,
    )


def _run(block: Block, batch: int, length: int, past: int, width: int) -> _Pass:
    """Return the cost of a forward pass over a batch, numbers counted in fours of bytes."""
    weights = {id(storage): storage for storage in map(Tensor.untyped_storage, block.parameters())}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if id(storage) not in weights:
            kept[id(storage)] = storage  # held, so that no other gets its place
        return tensor

    with ExitStack() as modes:
        modes.enter_context(torch.device("meta"))
        counter = modes.enter_context(FlopCounterMode(display=False))
        modes.enter_context(_FusedAttentionMode())
        modes.enter_context(saved_tensors_hooks(keep, lambda tensor: tensor))
        x = torch.zeros(batch, length, width).requires_grad_()
        held = torch.zeros(batch, past, width).requires_grad_()
        y = block.forward_with_past(x, held) if past else block(x)
    saves_input = kept.pop(id(x.untyped_storage()), None) is not None
    return _Pass(
        flops=counter.get_total_flops(),
        saved=sum(-(-storage.nbytes() // _NUMBER) for storage in kept.values()),
        saves_input=saves_input,
        saves_output=id(y.untyped_storage()) in kept,
    )


class _FusedAttentionMode(TorchFunctionMode):
    """Fused attention, which the meta device lacks: it would keep the weights of all pairs."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401 -- as torch passes them
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 -- whatever the function returns
        if func is not functional.scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        q, k, v, *more = args
        given = (*more[:1], (kwargs or {}).get("attn_mask"))
        masks = (mask.to(q.dtype) for mask in given if mask is not None)
        return _FusedAttention.apply(q, k, v, *masks)


class _FusedAttention(torch.autograd.Function):
    """The shapes of fused attention: it keeps its inputs, its output, and a sum for each query."""

    @staticmethod
    def forward(ctx: FunctionCtx, q: Tensor, k: Tensor, v: Tensor, *mask: Tensor) -> Tensor:
        """Compute what heads give; keys and values of fewer heads serve several queries."""
        fewer = q.dim() == 4 and k.shape[1] != q.shape[1]
        keys, values = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) if fewer else x for x in (k, v))
        scores = q @ keys.transpose(-1, -2)
        y = scores @ values
        ctx.save_for_backward(q, k, v, y, scores[..., 0].clone(), *mask)
        return y

    @staticmethod
    def backward(ctx: FunctionCtx, *_gradients: Tensor) -> None:
        """Raise: nothing is computed backward on the meta device."""
        raise NotImplementedError
