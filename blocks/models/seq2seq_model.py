"""The model around a transducer: embeddings of source and target, and the output."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar import EmbeddingInit as EmbeddingStart
from ...grammar import Frame, Init, Norm, Position, Recipe, nodes, parse
from ...grammar.vocabulary.registry import lookup
from ...grammar.vocabulary.spec import Role
from ..core.block import Block, BuildError, Context, missing_block_reason
from ..core.dropout import Dropout
from ..core.initialisation import Embedding, Linear, initialise
from ..core.transducer import State, build_transducer_block, missing_transducer_reason

PAD = 0
"""The symbol behind the end of a sequence; in front of a target it is the start symbol."""


class TransductionModel(nn.Module):
    """A model of targets, given sources: tokens (batch, n) and (batch, m) to logits (batch, m, vocab).

    Symbol 0 is padding: it stands behind sequences and never within them. Each position of the target sees
    the source and the symbols before it. A scaled embedding is multiplied by sqrt(d_model).
    """

    def __init__(self, recipe: Recipe, frame: Frame) -> None:
        super().__init__()
        assert isinstance(recipe.root, nodes.BlockNode)
        unit = frame.embedding == "unit"
        self.recipe = recipe
        self.frame = frame
        self.scale = 1.0 if unit else math.sqrt(frame.d_model)
        self.source = Embedding(frame.source.symbols, frame.d_model, unit=unit)
        self.target = Embedding(frame.symbols, frame.d_model, unit=unit)
        self.dropout = Dropout(frame.embedding_dropout)
        self.body = build_transducer_block(recipe.root, _context(frame))
        self.output = Linear(self.body.output_width, frame.symbols, bias=True)
        self.register_load_state_dict_post_hook(_after_load)

    def __repr__(self) -> str:
        return self.recipe.text

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits of every symbol of the target, given those before it."""
        written = self._embed_target(shift_right(target))
        return self._logits(self.body(self._embed_source(source), written, source != PAD, target != PAD))

    def nll(self, source: Tensor, target: Tensor) -> Tensor:
        """Minus the log-probability of each symbol of the target, in nats, (batch, m); 0 at padding."""
        logits = self(source, target).flatten(0, 1)
        lost = functional.cross_entropy(logits, target.flatten(), reduction="none", ignore_index=PAD)
        return lost.view_as(target)

    def begin(self, source: Tensor, lengths: Tensor) -> State:
        """The state before the first symbol; `lengths` (batch,) are those of the targets to be written."""
        return self.body.begin(self._embed_source(source), source != PAD, lengths)

    def step(self, state: State, previous: Tensor) -> tuple[Tensor, State]:
        """Logits (batch, vocab) of the symbol after `previous` (batch,), PAD at first, and the next state."""
        y, state = self.body.step(state, self._embed_target(previous))
        return self._logits(y), state

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

    def _embed_source(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.source(tokens) * self.scale)

    def _embed_target(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.target(tokens) * self.scale)

    def _logits(self, y: Tensor) -> Tensor:
        return self.output(self.dropout(y))


def shift_right(target: Tensor) -> Tensor:
    """What stands before each symbol of a target (batch, m): the start symbol before the first."""
    return torch.cat([torch.full_like(target[:, :1], PAD), target[:, :-1]], 1)


def build_transducer(
    recipe: str | Recipe,
    *,
    d_model: int,
    source_vocab: int,
    target_vocab: int,
    norm: Norm = "pre",
    residual: bool = True,
    position: Position = "timing",
    dropout: float = 0.1,
    attention_dropout: float = 0.0,
    embedding_dropout: float = 0.0,
    embedding: EmbeddingStart = "scaled",
    init: Init = "glorot",
    generator: torch.Generator | None = None,
) -> TransductionModel:
    """The model of a transducer's recipe, its settings as `build` takes them; both sizes count symbol 0.

    Raises RecipeError for a wrong text, BuildError for what cannot be built, with all reasons.
    """
    frame = Frame(
        d_model=d_model,
        vocab=target_vocab,
        source_vocab=source_vocab,
        norm=norm,
        residual=residual,
        position=position,
        dropout=dropout,
        attention_dropout=attention_dropout,
        embedding_dropout=embedding_dropout,
        embedding=embedding,
        init=init,
    )
    return build_transducer_from_config(parse(recipe), frame, generator=generator)


def build_transducer_from_config(
    recipe: Recipe, frame: Frame, *, generator: torch.Generator | None = None
) -> TransductionModel:
    """The model of a transducer's recipe in its frame.

    Raises BuildError for what cannot be built, with all reasons.
    """
    faults = [*_recipe_faults(recipe), *frame.faults(), *_frame_faults(frame)]
    if faults:
        lines = (f"  {fault}" for fault in faults)
        raise BuildError("\n".join([f"recipe '{recipe.text}' cannot be built", *lines]))
    model = TransductionModel(recipe, frame)
    initialise(model, generator, frame.init)
    return model


def _recipe_faults(recipe: Recipe) -> list[str]:
    """What in a recipe is still open, what is no transducer, and which of its blocks have no module."""
    faults = [f"hole {{{name}}} is not filled" for name in recipe.holes]
    faults += [f"search dimension {path} has no value" for path, _ in recipe.dimensions]
    root = recipe.root
    if not isinstance(root, nodes.BlockNode) or not _is_transducer(root):
        return [*faults, f"expected a transducer, as seq2seq(lstm, lstm), got {recipe.text}"]
    inside = [node for node in nodes.walk(root) if isinstance(node, nodes.BlockNode) and node is not root]
    missing = [
        missing_transducer_reason(root.name),
        *map(missing_block_reason, dict.fromkeys(b.name for b in inside)),
    ]
    return faults + [one for one in missing if one is not None]


def _is_transducer(block: nodes.BlockNode) -> bool:
    spec = lookup(block.name)
    return spec is not None and spec.role is Role.TRANSDUCER


def _frame_faults(frame: Frame) -> list[str]:
    """What a model has that reads and writes one sequence, and this one has not."""
    rules = (
        (frame.columns is None and frame.targets is None, "expected symbols in and out, got numbers"),
        (not frame.cutoffs, "expected no cutoffs, got some: two vocabularies have no clusters in common"),
        (not frame.tied, "expected weights that are not tied: the output is not as wide as an embedding"),
    )
    return [fault for holds, fault in rules if not holds]


def _context(frame: Frame) -> Context:
    """Where the blocks are built."""
    return Context(
        width=frame.d_model,
        causal=False,
        dropout=frame.dropout,
        attention_dropout=frame.attention_dropout,
        norm=frame.norm,
        residual=frame.residual,
        timing=frame.position == "timing",
    )


def _after_load(model: nn.Module, _found: object) -> None:
    """After weights were loaded."""
    assert isinstance(model, TransductionModel)
    model.after_optimiser_step()
