"""The model around a recipe: embedding, residual stack, final norm, output; and `build`, which makes it."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ..grammar import Norm, Position, Recipe, analyse, nodes, parse
from .block import BuildError, Context, missing_module
from .initial import Embedding, Linear, initialise
from .stack import build_body
from .timing import timing_signal

MOST_PARAMETERS = 1_000_000_000
"""Larger models are not built unless it is asked for: they take 4 GB, and in training 16."""


class Model(nn.Module):
    """A sequence model: tokens (batch, length) to logits (batch, length, vocab).

    The embedding is scaled by sqrt(d_model). The timing signal, if any, is added to it and again to the
    residual stream in front of every sub-layer in which positions mix (the active memory paper's program).
    """

    def __init__(self, recipe: Recipe, *, vocab: int, context: Context) -> None:
        super().__init__()
        self.recipe = recipe
        self.width = context.width
        self.timing = context.timing
        self.embedding = Embedding(vocab, context.width)
        self.body = build_body(recipe.root, context)
        self.norm = nn.LayerNorm(context.width) if context.norm == "pre" else None
        self.output = Linear(context.width, vocab, bias=True)

    def __repr__(self) -> str:
        return self.recipe.text

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Logits of every position; `lengths` (batch,), each at least 1, tells valid tokens from padding."""
        length = tokens.shape[1]
        x = self.embedding(tokens) * math.sqrt(self.width)  # (batch, length, width)
        mask = None if lengths is None else torch.arange(length, device=tokens.device) < lengths[:, None]
        signal = timing_signal(length, self.width, like=x) if self.timing else None
        x = self.body(x if signal is None else x + signal, mask, signal)
        return self.output(x if self.norm is None else self.norm(x))


def build(
    recipe: str | Recipe,
    *,
    d_model: int,
    vocab: int,
    causal: bool = False,
    norm: Norm = "pre",
    position: Position = "timing",
    dropout: float = 0.1,
    generator: torch.Generator | None = None,
    max_parameters: int | None = MOST_PARAMETERS,
) -> Model:
    """The model of a recipe, its weights drawn from `generator` (CPU), or from the global one.

    `norm` is pre or post, `position` timing or none; `dropout` is the probability to drop. The embedding
    begins as N(0, 1 / d_model), maps and paddings Glorot uniform, biases 0, norms 1 and 0. A model of more
    than `max_parameters` is refused before anything is allocated; None sets no limit.
    Raises RecipeError for a wrong text, BuildError for what cannot be built, with all reasons.
    """
    recipe = parse(recipe)
    faults = [
        *_recipe_faults(recipe),
        *_setting_faults(d_model=d_model, vocab=vocab, dropout=dropout, norm=norm, position=position),
    ]
    if not faults and max_parameters is not None:
        parameters = analyse(recipe, d_model=d_model, length=1, vocab=vocab, norm=norm).parameters
        if parameters > max_parameters:
            faults = [f"expected at most {max_parameters:,} parameters (max_parameters), got {parameters:,}"]
    if faults:
        lines = (f"  {fault}" for fault in faults)
        raise BuildError("\n".join([f"recipe '{recipe.text}' cannot be built", *lines]))
    context = Context(width=d_model, causal=causal, dropout=dropout, norm=norm, timing=position == "timing")
    model = Model(recipe, vocab=vocab, context=context)
    initialise(model, generator)
    return model


def _recipe_faults(recipe: Recipe) -> list[str]:
    """What in a recipe is still open, and which of its blocks have no module."""
    faults = [f"hole {{{name}}} is not filled" for name in recipe.holes]
    faults += [f"search dimension {path} has no value" for path, _ in recipe.dimensions]
    blocks = dict.fromkeys(node.name for node in nodes.walk(recipe.root) if isinstance(node, nodes.Block))
    return faults + [missing for name in blocks if (missing := missing_module(name)) is not None]


def _setting_faults(*, d_model: int, vocab: int, dropout: float, norm: str, position: str) -> list[str]:
    """Which settings of the model are out of bounds."""
    rules = (
        (d_model >= 1, f"expected d_model of at least 1, got {d_model}"),
        (vocab >= 1, f"expected vocab of at least 1, got {vocab}"),
        (0.0 <= dropout < 1.0, f"expected dropout from 0 up to below 1, got {dropout}"),
        (norm in ("pre", "post"), f"expected norm to be pre or post, got '{norm}'"),
        (position in ("timing", "none"), f"expected position to be timing or none, got '{position}'"),
    )
    return [fault for holds, fault in rules if not holds]
