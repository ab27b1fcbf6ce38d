"""The model around a recipe: embedding, residual stack, final norm, output; and `build`, which makes it."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar import EmbeddingInit as EmbeddingStart
from ...grammar import Frame, Init, Norm, Position, Recipe, analyse_framed, nodes, parse
from ...grammar.vocabulary.output_kinds import OTHER_LENGTH, VECTOR, output_kind
from ...grammar.vocabulary.registry import lookup
from ...grammar.vocabulary.spec import Role
from ..core.block import Block, BuildError, Context, missing_block_reason
from ..core.dropout import Dropout
from ..core.initialisation import Embedding, Linear, initialise
from ..core.positional_encoding import sinusoidal_encoding
from ..core.residual_stack import build_body
from ..core.streaming import StreamChunk, StreamState
from ..core.transducer import missing_transducer_reason
from ..layers.fused_pooling import try_fused_pooling
from .adaptive_softmax import AdaptiveEmbedding, AdaptiveSoftmax, TiedLinear
from .seq2seq_model import TransductionModel, build_transducer_from_config

MAX_PARAMETERS = 1_000_000_000
"""Larger models are not built unless it is asked for: they take 4 GB, and in training 16."""


class Model(nn.Module):
    """A sequence model: symbols (batch, length), or numbers (batch, length, columns), to outputs.

    Outputs are logits (batch, length, vocab), log-probabilities where the softmax is adaptive, or numbers
    (batch, length, targets); behind a pool, (batch, vocab) or (batch, targets). A scaled embedding is
    multiplied by sqrt(d_model). The timing signal, if any, is added to what comes in and again to the
    residual stream in front of every sub-layer in which positions mix (the active memory paper's program).
    """

    def __init__(self, recipe: Recipe, frame: Frame) -> None:
        super().__init__()
        self.recipe = recipe
        self.frame = frame
        scaled = frame.columns is None and frame.embedding == "scaled"
        self.scale = math.sqrt(frame.d_model) if scaled else None
        self.pooled = output_kind(recipe.root) == VECTOR
        self.embedding = _build_input_layer(frame)
        self.dropout = Dropout(frame.embedding_dropout)
        self.body = build_body(recipe.root, _context(frame))
        self.norm = nn.LayerNorm(frame.d_model) if frame.norm == "pre" else None
        self.output = _build_output_layer(frame, self.embedding)
        self.register_load_state_dict_post_hook(_after_load)

    def __repr__(self) -> str:
        return self.recipe.text

    def forward(self, inputs: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The outputs; `lengths` (batch,), each at least 1, tells valid positions from padding."""
        return self.output(self._hidden(inputs, lengths))

    def nll(self, inputs: Tensor, targets: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Minus the log-probability of each target, in nats: (batch, length), or (batch,) behind a pool.

        0 at padding, where any symbol may stand. An adaptive softmax is not computed where it need not be.
        """
        lost = self._nll(self._hidden(inputs, lengths), targets)
        mask = None if self.pooled else _mask(inputs, lengths)
        return lost if mask is None else torch.where(mask, lost, 0.0)

    def forward_stream(self, inputs: Tensor, state: StreamState) -> tuple[Tensor, StreamState]:
        """The outputs of the next piece of endless sequences, and where they then stand.

        The model is causal. Raises BuildError for a block to which nothing bounds the past.
        """
        hidden, state = self._hidden_stream(inputs, state)
        return self.output(hidden), state

    def nll_stream(self, inputs: Tensor, targets: Tensor, state: StreamState) -> tuple[Tensor, StreamState]:
        """As `nll`, of the next piece of endless sequences, and where they then stand."""
        hidden, state = self._hidden_stream(inputs, state)
        return self._nll(hidden, targets), state

    def after_optimiser_step(self) -> None:
        """Let every block take note of new weights, as after each step of the optimiser."""
        for block in self._blocks():
            block.after_optimiser_step()

    def penalty(self) -> Tensor | None:
        """The sum of what blocks add to the loss; None if none of them does."""
        terms = [term for block in self._blocks() if (term := block.penalty()) is not None]
        return sum(terms[1:], start=terms[0]) if terms else None

    def _blocks(self) -> list[Block]:
        return [module for module in self.body.modules() if isinstance(module, Block)]

    def _hidden(self, inputs: Tensor, lengths: Tensor | None) -> Tensor:
        """What enters the output layer: (batch, length, width), or (batch, width) behind a pool."""
        mask = _mask(inputs, lengths)
        x = self._fused_pooling(inputs, mask)
        if x is None:
            x, signal = self._embed(inputs, 0)
            x = self.body(x, mask, signal)
        x = self._normalise(x)
        return x.squeeze(1) if self.pooled else x

    def _fused_pooling(self, inputs: Tensor, mask: Tensor | None) -> Tensor | None:
        """The body's output, (batch, 1, width), where no sequence of vectors need be held for it."""
        if self.frame.position != "none" or not isinstance(self.embedding, Linear):
            return None
        if self.training and self.frame.embedding_dropout:
            return None
        return try_fused_pooling(self.embedding, self.body, inputs, mask)

    def _hidden_stream(self, inputs: Tensor, state: StreamState) -> tuple[Tensor, StreamState]:
        """What enters the output layer at the next piece, and the stream behind it."""
        if not self.frame.causal:
            raise BuildError("expected a causal model for a stream, got one that sees the future")
        x, signal = self._embed(inputs, state.past_length)
        piece = StreamChunk(state)
        x = self._normalise(self.body(x, None, signal, piece))
        return x, StreamState(state.past_length + inputs.shape[1], piece.next_states())

    def _embed(self, inputs: Tensor, start: int) -> tuple[Tensor, Tensor | None]:
        """What enters the body, (batch, length, width), and the timing signal from position `start` on."""
        x = self.embedding(inputs)
        x = self.dropout(x if self.scale is None else x * self.scale)
        if self.frame.position == "none":
            return x, None
        signal = sinusoidal_encoding(x.shape[1], x.shape[2], like=x, start=start)
        return x + signal, signal

    def _normalise(self, x: Tensor) -> Tensor:
        """What is made of the body's output before the output layer."""
        return self.dropout(x if self.norm is None else self.norm(x))

    def _nll(self, hidden: Tensor, targets: Tensor) -> Tensor:
        if self.frame.targets is not None:
            raise BuildError(f"expected a model of a distribution, got one of {self.frame.targets} numbers")
        if isinstance(self.output, AdaptiveSoftmax):
            return self.output.nll(hidden, targets)
        logits = self.output(hidden)
        return functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none").view_as(
            targets
        )


def build(
    recipe: str | Recipe,
    *,
    d_model: int,
    vocab: int | None = None,
    source_vocab: int | None = None,
    causal: bool = False,
    norm: Norm = "pre",
    residual: bool = True,
    position: Position = "timing",
    dropout: float = 0.1,
    attention_dropout: float = 0.0,
    embedding_dropout: float = 0.0,
    embedding: EmbeddingStart = "scaled",
    tied: bool = False,
    cutoffs: tuple[int, ...] = (),
    init: Init = "glorot",
    columns: int | None = None,
    targets: int | None = None,
    generator: torch.Generator | None = None,
    max_parameters: int | None = MAX_PARAMETERS,
) -> Model | TransductionModel:
    """The model of a recipe, its weights drawn from `generator` (CPU), or from the global one.

    `norm` is pre, post or none, `position` timing or none; `dropout` is the probability to drop,
    `embedding_dropout` that on embeddings and in front of the output. Without `residual` a sub-layer's output
    takes the place of its input. An embedding that is scaled begins as N(0, 1 / d_model), one that is unit as
    N(0, 1); maps as `init` says, glorot (uniform), he (normal) or uniform (within 1 / √inputs); paddings
    Glorot uniform, biases 0, norms 1 and 0. A model of more than `max_parameters` is refused before anything
    is allocated; None sets no limit.

    Inputs are symbols, or `columns` real numbers at each position; outputs a distribution over `vocab`, or
    `targets` real numbers. `cutoffs` divide the vocabulary into clusters, in the input and in the softmax;
    `tied` gives the softmax the embedding's weights. A transducer gets a model of a source and a target, both
    of symbols of `vocab`.
    Raises RecipeError for a wrong text, BuildError for what cannot be built, with all reasons.
    """
    recipe = parse(recipe)
    frame = Frame(
        d_model=d_model,
        vocab=vocab,
        source_vocab=source_vocab,
        causal=causal,
        norm=norm,
        residual=residual,
        position=position,
        dropout=dropout,
        attention_dropout=attention_dropout,
        embedding_dropout=embedding_dropout,
        embedding=embedding,
        tied=tied,
        cutoffs=cutoffs,
        init=init,
        columns=columns,
        targets=targets,
    )
    _check(recipe, frame, max_parameters)
    if output_kind(recipe.root) == OTHER_LENGTH:
        return build_transducer_from_config(recipe, frame, generator=generator)
    model = Model(recipe, frame)
    initialise(model, generator, init)
    return model


def _check(recipe: Recipe, frame: Frame, max_parameters: int | None) -> None:
    """Raise BuildError with all reasons why this cannot be built."""
    faults = [*_recipe_faults(recipe), *frame.faults()]
    if not faults and max_parameters is not None:
        parameters = analyse_framed(recipe, frame, 1).parameters
        if parameters > max_parameters:
            faults = [f"expected at most {max_parameters:,} parameters (max_parameters), got {parameters:,}"]
    if faults:
        lines = (f"  {fault}" for fault in faults)
        raise BuildError("\n".join([f"recipe '{recipe.text}' cannot be built", *lines]))


def _build_input_layer(frame: Frame) -> nn.Module:
    """What makes vectors of the inputs."""
    if frame.columns is not None:
        return Linear(frame.columns, frame.d_model, bias=True)
    unit = frame.embedding == "unit"
    if frame.cutoffs:
        return AdaptiveEmbedding(frame.clusters, frame.d_model, unit=unit)
    return Embedding(frame.symbols, frame.d_model, unit=unit)


def _build_output_layer(frame: Frame, embedding: nn.Module) -> nn.Module:
    """What makes outputs of vectors."""
    if frame.targets is not None:
        return Linear(frame.d_model, frame.targets, bias=True)
    if frame.cutoffs:
        tied = embedding if frame.tied and isinstance(embedding, AdaptiveEmbedding) else None
        return AdaptiveSoftmax(frame.clusters, frame.d_model, tied)
    if frame.tied and isinstance(embedding, Embedding):
        return TiedLinear(embedding.weight)
    return Linear(frame.d_model, frame.symbols, bias=True)


def _context(frame: Frame) -> Context:
    """Where its blocks are built."""
    return Context(
        width=frame.d_model,
        causal=frame.causal,
        dropout=frame.dropout,
        attention_dropout=frame.attention_dropout,
        norm=frame.norm,
        residual=frame.residual,
        timing=frame.position == "timing",
    )


def _mask(inputs: Tensor, lengths: Tensor | None) -> Tensor | None:
    """Which positions are valid, (batch, length); None for all."""
    if lengths is None:
        return None
    return torch.arange(inputs.shape[1], device=inputs.device) < lengths[:, None]


def _recipe_faults(recipe: Recipe) -> list[str]:
    """What in a recipe is still open, and which of its blocks have no module."""
    faults = [f"hole {{{name}}} is not filled" for name in recipe.holes]
    faults += [f"search dimension {path} has no value" for path, _ in recipe.dimensions]
    blocks = dict.fromkeys(node.name for node in nodes.walk(recipe.root) if isinstance(node, nodes.BlockNode))
    return faults + [missing for name in blocks if (missing := _missing_reason(name)) is not None]


def _missing_reason(name: str) -> str | None:
    """Why a block of that name cannot be built; None if it can."""
    spec = lookup(name)
    transduces = spec is not None and spec.role is Role.TRANSDUCER
    return missing_transducer_reason(name) if transduces else missing_block_reason(name)


def _after_load(model: nn.Module, _found: object) -> None:
    """After weights were loaded."""
    assert isinstance(model, Model)
    model.after_optimiser_step()
