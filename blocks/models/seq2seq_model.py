"""The model of a transducer: embeddings of source and target, and the output layer."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ...grammar import ModelConfig, Recipe, nodes
from ..core.block import Context
from ..core.initialisation import Embedding, Linear
from ..core.transducer import AnyTransducer, State, build_transducer_block
from .base_model import BaseModel, fill_places, find_places, take_places

PAD = 0
"""The padding symbol, which is also the start symbol of a target."""


class TransductionModel(BaseModel[AnyTransducer]):
    """A sequence-to-sequence model.

    It maps tokens (batch, n) and (batch, m) to logits (batch, m, vocab). Symbol 0 is padding: it follows
    sequences and never occurs within them. Each position of the target sees the source and the symbols before
    it. A scaled embedding is multiplied by sqrt(d_model).
    """

    def __init__(self, recipe: Recipe, config: ModelConfig) -> None:
        super().__init__(recipe, config)
        settings, interface = config.settings, config.interface
        assert isinstance(recipe.root, nodes.BlockNode)
        self.scale = settings.embedding_scale
        self.source = Embedding(interface.source_symbols, settings.d_model, rule=settings.embedding)
        self.target = Embedding(interface.symbols, settings.d_model, rule=settings.embedding)
        self.body = build_transducer_block(recipe.root, Context(config=config))
        self.output = Linear(
            self.body.output_width, interface.symbols, bias=settings.output_bias, bias_init=settings.bias_init
        )

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the logits of each symbol of the target, given the symbols before it."""
        return self.output(self._hidden(source, target))

    def outputs_at(self, source: Tensor, target: Tensor, places: Tensor) -> Tensor:
        """Return only the logits at `places`, (places, vocab).

        The places are flat indices into the target.
        """
        return self.output(take_places(self._hidden(source, target), places))

    def nll(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the negative log-likelihood of each target in nats, (batch, m); 0 at padding."""
        places = find_places(target != PAD)
        logits = self.outputs_at(source, target, places)
        lost = functional.cross_entropy(logits, target.flatten()[places], reduction="none")
        return fill_places(lost, places, target)

    def begin(self, source: Tensor, lengths: Tensor) -> State:
        """Return the state before the first symbol. `lengths` (batch,) are the lengths of the targets."""
        return self.body.begin(self._embed_source(source), _mask(source), lengths)

    def step(self, state: State, previous: Tensor) -> tuple[Tensor, State]:
        """Return logits (batch, vocab) of the symbol after `previous` (batch,), and the next state."""
        y, state = self.body.step(state, self._embed_target(previous))
        return self.output(self.dropout(y)), state

    def _embed_source(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.source(tokens) * self.scale)

    def _embed_target(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.target(tokens) * self.scale)

    def _hidden(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the input of the output layer, (batch, m, width)."""
        written = self._embed_target(shift_right(target))
        return self.dropout(self.body(self._embed_source(source), written, _mask(source), _mask(target)))


def _mask(tokens: Tensor) -> Tensor:
    """Return a mask (batch, n) that is true at valid positions.

    An empty sequence is computed as one of length 1: a softmax over no position has no finite gradient.
    """
    valid = tokens != PAD
    valid[:, :1] = True
    return valid


def shift_right(target: Tensor) -> Tensor:
    """Shift a target (batch, m) right by one, with the start symbol first."""
    return torch.cat([torch.full_like(target[:, :1], PAD), target[:, :-1]], 1)


def transduction_faults(config: ModelConfig) -> list[str]:
    """Return messages about settings that a transduction model does not support."""
    settings, interface = config.settings, config.interface
    rules = (
        (
            interface.columns is None and interface.targets is None,
            "a transducer needs symbols as inputs and outputs, got numbers",
        ),
        (interface.classes is None, "a transducer needs symbols as outputs, got classes"),
        (
            not settings.cutoffs,
            "expected no cutoffs in a transducer: its vocabularies have no common clusters",
        ),
        (
            not settings.input_dropout,
            "expected no input_dropout in a transducer: embedding_dropout applies to its inputs",
        ),
        (not settings.position_kind.by_length, f"expected no {settings.position} positions in a transducer"),
        (not interface.bottleneck, "expected no bottleneck in a transducer, got one"),
        (
            settings.residual_init == "plain",
            f"expected residual_init plain in a transducer, got {settings.residual_init}",
        ),
        (not settings.tied, "expected weights that are not tied: the output is not as wide as an embedding"),
    )
    return [fault for holds, fault in rules if not holds]
