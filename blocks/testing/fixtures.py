"""Blocks made to be looked at: weights drawn from a seed, sequences, masks, and what training keeps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional

from ...grammar import nodes
from ..core.block import Block, Context, build_block
from ..core.initialisation import initialise
from ..models.sequence_model import Model

WIDTH = 6
"""The width of the model around a block that is looked at."""


def make_generator(seed: int) -> torch.Generator:
    """A generator by its seed."""
    return torch.Generator().manual_seed(seed)


def make_block(
    node: nodes.BlockNode,
    *,
    causal: bool,
    seed: int = 0,
    width: int = WIDTH,
    dropout: float = 0.0,
    dtype: torch.dtype = torch.float64,
) -> Block:
    """A block with drawn weights, in evaluation; biases are drawn too, so that none is zero."""
    block = build_block(node, Context(width=width, causal=causal, dropout=dropout))
    generator = make_generator(seed)
    initialise(block, generator)
    with torch.no_grad():
        for name, parameter in block.named_parameters():
            if name.endswith("bias"):
                parameter.uniform_(-0.5, 0.5, generator=generator)
    return block.to(dtype).eval()


def random_sequences(
    batch: int, length: int, *, width: int = WIDTH, seed: int = 1, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Normal numbers (batch, length, width)."""
    return torch.randn(batch, length, width, generator=make_generator(seed), dtype=dtype)


def prefix_mask(lengths: Sequence[int], length: int) -> Tensor:
    """Which positions of sequences of these lengths are valid, padded to one length: (batch, length)."""
    return torch.arange(length) < torch.tensor(lengths)[:, None]


def saved_bytes(model: Model, *, batch: int, length: int) -> int:
    """The bytes of everything saved for the backward pass, parameters left out, each storage once."""
    device = next(model.parameters()).device
    frame = model.frame
    own = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage  # held, so that no other gets its place
        return tensor

    inputs = torch.zeros(batch, length, dtype=torch.int64, device=device)
    if frame.columns is not None:
        inputs = torch.zeros(batch, length, frame.columns, device=device)
    places = (batch,) if model.pooled else (batch, length)
    with saved_tensors_hooks(note, lambda tensor: tensor):
        if frame.targets is None:
            loss = model.train().nll(inputs, torch.zeros(places, dtype=torch.int64, device=device))
        else:
            outputs = model.train()(inputs)
            loss = functional.mse_loss(outputs, torch.zeros(*places, frame.targets, device=device))
    assert loss.requires_grad, "expected a loss with a gradient"
    return sum(storage.nbytes() for storage in kept.values())
