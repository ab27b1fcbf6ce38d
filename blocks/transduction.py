"""The model around a transducer: embeddings of source and target, and the output."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ..grammar import Norm, Position, Recipe, nodes, parse
from .block import BuildError, Context
from .initial import Embedding, Linear, initialise
from .transducer import State, build_transducing

PAD = 0
"""The symbol behind the end of a sequence; in front of a target it is the start symbol."""


class TransductionModel(nn.Module):
    """A model of targets, given sources: tokens (batch, n) and (batch, m) to logits (batch, m, vocab).

    Symbol 0 is padding: it stands behind sequences and never within. The embeddings are scaled by
    sqrt(d_model).
    """

    def __init__(self, recipe: Recipe, *, source_vocab: int, target_vocab: int, context: Context) -> None:
        super().__init__()
        if not isinstance(recipe.root, nodes.Block):
            raise BuildError(f"expected a transducer, got {recipe.text}")
        self.recipe = recipe
        self.scale = math.sqrt(context.width)
        self.source = Embedding(source_vocab, context.width)
        self.target = Embedding(target_vocab, context.width)
        self.body = build_transducing(recipe.root, context)
        self.output = Linear(self.body.outputs, target_vocab, bias=True)

    def __repr__(self) -> str:
        return self.recipe.text

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits of every symbol of the target, each from the symbols before it."""
        previous = shifted(target)
        y = self.body(self._read(source), self._written(previous), source != PAD, target != PAD)
        return self.output(y)

    def begin(self, source: Tensor, lengths: Tensor) -> State:
        """The state before the first symbol; `lengths` (batch,) are those of the targets to be written."""
        return self.body.begin(self._read(source), source != PAD, lengths)

    def step(self, state: State, previous: Tensor) -> tuple[Tensor, State]:
        """Logits (batch, vocab) of the symbol after `previous` (batch,), PAD at first, and the next state."""
        y, state = self.body.step(state, self._written(previous))
        return self.output(y), state

    def _read(self, tokens: Tensor) -> Tensor:
        return self.source(tokens) * self.scale

    def _written(self, tokens: Tensor) -> Tensor:
        return self.target(tokens) * self.scale


def shifted(target: Tensor) -> Tensor:
    """What stands before each symbol of a target (batch, m): the start symbol before the first."""
    return torch.cat([torch.full_like(target[:, :1], PAD), target[:, :-1]], 1)


def build_transducer(
    recipe: str | Recipe,
    *,
    d_model: int,
    source_vocab: int,
    target_vocab: int,
    norm: Norm = "pre",
    position: Position = "timing",
    dropout: float = 0.1,
    generator: torch.Generator | None = None,
) -> TransductionModel:
    """The model of a transducer's recipe, its weights drawn from `generator` as `build` draws them.

    Both vocabularies count symbol 0. Raises RecipeError for a wrong text, BuildError for what is no
    transducer.
    """
    context = Context(width=d_model, causal=False, dropout=dropout, norm=norm, timing=position == "timing")
    model = TransductionModel(
        parse(recipe), source_vocab=source_vocab, target_vocab=target_vocab, context=context
    )
    initialise(model, generator)
    return model
