"""The coordinate check of μP (Yang et al. 2022, D.1): the size of activations in trained models.

Train models of several widths for a few steps. If the sizes of a layer grow with the width, the best learning
rate shrinks with it; with `mup` in [model] they do not depend on the width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn

from activemem import register_probe


@register_probe(
    "coordinates",
    title="Mean absolute activation",
    decimals=4,
    index_titles=["layer"],
    kinds=["tagging", "causal_tagging", "language", "classification", "token_classification", "regression"],
)
def coordinates(model: nn.Module, batches: Iterable[Any]) -> dict[str, float]:
    """Return the mean absolute activation of the embedding, of each layer and of the output."""
    totals, counts = dict[str, float](), dict[str, int]()

    def add(name: str) -> Callable[[nn.Module, object, Tensor], None]:
        def hook(_module: nn.Module, _inputs: object, outputs: Tensor) -> None:
            totals[name] = totals.get(name, 0.0) + outputs.abs().sum().item()
            counts[name] = counts.get(name, 0) + outputs.numel()

        return hook

    body = model.get_submodule("body.layers")
    places = {"embedding": model.get_submodule("embedding")}
    places |= {str(number): layer for number, layer in enumerate(body.children(), 1)}
    handles = [module.register_forward_hook(add(name)) for name, module in places.items()]
    handles.append(model.register_forward_hook(add("output")))
    try:
        for inputs, _, lengths in batches:
            model(inputs, lengths)
    finally:
        for handle in handles:
            handle.remove()
    return {name: total / counts[name] for name, total in totals.items()}
