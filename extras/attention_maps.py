"""Attention of trained models: the weights in one test sequence, and how far each layer looks.

For every layer and head, call `model.attention(inputs)` in Python.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from activemem import Examples, register_probe

Model = Any
"""A model of `activemem.build`."""

LONGEST = 40
"""The longest sequence whose weights are stored, in positions."""

KINDS = ("tagging", "causal_tagging", "language", "classification", "token_classification")


@register_probe(
    "attention_map", title="Attention weight, mean of heads", index_titles=("query", "key"), kinds=KINDS
)
def attention_map(model: Model, batches: Iterator[Examples]) -> Mapping[str, float]:
    """Return the weights of the last layer with attention, in the first sequence that is not too long."""
    for inputs, _, lengths in batches:
        sizes = [inputs.shape[1]] * len(inputs) if lengths is None else lengths.tolist()
        for row, size in enumerate(sizes):
            if 1 < size <= LONGEST:
                last = model.attention(inputs[row : row + 1, :size])[-1]
                weights = last.weights[0].mean(0)[:, : last.weights.shape[-1] - last.persistent]
                return {
                    f"{q},{k}": w for q, of in enumerate(weights.tolist(), 1) for k, w in enumerate(of, 1)
                }
    raise ValueError(f"expected a test sequence of 2 to {LONGEST} positions, got none")


@register_probe("attention_distance", title="Mean distance attended to", index_titles=("layer",), kinds=KINDS)
def attention_distance(model: Model, batches: Iterator[Examples]) -> Mapping[str, float]:
    """Return the mean distance from a query to its keys by layer, weighted by attention, over one batch."""
    inputs, _, lengths = next(batches)
    found: dict[str, list[torch.Tensor]] = {}
    for each in model.attention(inputs, lengths):
        _, _, queries, keys = each.weights.shape
        if keys - each.persistent != queries:  # pools and trained vectors have no distance
            continue
        places = torch.arange(queries)
        distances = (places[:, None] - places).abs()
        valid = torch.ones(len(inputs), queries) if lengths is None else (places < lengths[:, None]).float()
        mean = (each.weights[..., :queries] * distances).sum(-1).mean(1)  # (batch, queries)
        found.setdefault(str(each.layer), []).append((mean * valid).sum() / valid.sum())
    if not found:
        raise ValueError("expected a block that attends to positions, such as sa")
    return {layer: float(torch.stack(of).mean()) for layer, of in found.items()}
