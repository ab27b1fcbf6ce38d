"""The model of a recipe, and the function that builds it.

A model of a sequence has an embedding, a residual stack, a final norm and an output layer. The model of a
transducer has embeddings of its source and its target, and an output layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from textwrap import shorten
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...errors import argument_fault, check_arguments, describe_value, number_fault
from ...grammar import ModelConfig, Recipe, nodes, parse
from ...grammar.analysis.analyse import count_parameters
from ...grammar.model_config import ModelConfigError, ResidualInit, configure
from ...grammar.vocabulary.spec import OTHER_LENGTH, VECTOR, Role, lookup, output_kind, pair_position_fault
from ..core.attention_maps import AttentionMap, is_recording, recording
from ..core.block import BLOCKS, Block, BuildError, Context, InputError, StreamChunk, StreamState
from ..core.dropout import Dropout
from ..core.initialisation import Embedding, Linear, drawn_by, initialise, widen_output
from ..core.operations import ACTIVATIONS
from ..core.positions import PositionalEncoding, sinusoidal_encoding
from ..core.residual_stack import ResidualStack, SideInputs, build_body, build_final_norm, build_norm
from ..core.transducer import TRANSDUCERS, AnyTransducer, State, build_transducer_block
from ..layers.pooling import try_fused_pooling
from ..layers.window_attention import WindowedBlock, update_spans
from .adaptive_softmax import AdaptiveEmbedding, AdaptiveSoftmax, TiedLinear

Body = TypeVar("Body", bound=nn.Module)


class BaseModel(nn.Module, Generic[Body]):
    """A model built from a recipe and a configuration.

    Subclasses define the `body` and the layers around it.
    """

    body: Body

    def __init__(self, recipe: Recipe, config: ModelConfig) -> None:
        super().__init__()
        self.recipe = recipe
        self.config = config
        self.dropout = Dropout(config.settings.embedding_dropout)
        self.register_load_state_dict_post_hook(_after_load)

    def __repr__(self) -> str:
        return self.recipe.text

    def after_optimiser_step(self) -> None:
        """Notify the blocks that an optimiser step has changed the weights."""
        if not self._notified_blocks:
            return
        windows = [block for block in self._notified_blocks if isinstance(block, WindowedBlock)]
        update_spans(windows)
        for block in self._notified_blocks:
            if not isinstance(block, WindowedBlock):
                block.after_optimiser_step()

    def penalty(self) -> Tensor | None:
        """Return the sum of the terms that blocks add to the loss; None if no block adds one."""
        terms = [term for block in self._blocks() if (term := block.penalty()) is not None]
        return sum(terms[1:], start=terms[0]) if terms else None

    @cached_property
    def _notified_blocks(self) -> list[Block]:
        nothing = Block.after_optimiser_step
        return [block for block in self._blocks() if type(block).after_optimiser_step is not nothing]

    def _blocks(self) -> list[Block]:
        return [module for module in self.body.modules() if isinstance(module, Block)]


def find_places(chosen: Tensor) -> Tensor:
    """Return the flat indices of true values in a mask (batch, length).

    A mask on a GPU forces a synchronisation, so it should be on the host.
    """
    return chosen.flatten().nonzero().squeeze(1)


def take_places(rows: Tensor, places: Tensor) -> Tensor:
    """Return the rows (chosen, …) of a tensor (batch, length, …) at the flat indices `places`."""
    return rows.flatten(0, 1).index_select(0, places)


def fill_places(values: Tensor, places: Tensor, like: Tensor) -> Tensor:
    """Return zeros (batch, length) with `values` (chosen,) at the flat indices `places`."""
    return values.new_zeros(like.numel()).scatter(0, places, values).view(like.shape)


def _after_load(model: nn.Module, _found: object) -> None:
    assert isinstance(model, BaseModel)
    model.after_optimiser_step()


class BottleneckDecoder(nn.Module):
    """Decoder that sees only the body's last position (Poli et al. 2024).

    From it, it computes the outputs of all positions: y_t = gelu(W₂ norm(gelu(W₁ norm(x_last + p_t)))), where
    p_t encodes position t. It follows the auto-encoder of MAD's program, where p_t are sinusoids. The model's
    last norm and output layer come after this module.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.settings.d_model
        self.norms = nn.ModuleList(build_norm(config) for _ in range(2))
        self.maps = nn.ModuleList(Linear(width, width, bias=True) for _ in range(2))

    def forward(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        """Map x (batch, length, width) to the same shape, from the last valid position of x only."""
        batch, length, width = x.shape
        rows = torch.arange(batch, device=x.device)
        code = x[:, -1] if lengths is None else x[rows, lengths - 1]
        y = code.unsqueeze(1) + sinusoidal_encoding(length, width, like=x)
        for norm, linear in zip(self.norms, self.maps, strict=True):
            y = functional.gelu(linear(norm(y)))
        return y


MAX_PARAMETERS = 1_000_000_000
"""The default limit on parameters: larger models take 4 GB, and 16 GB in training."""


class Model(BaseModel[ResidualStack]):
    """A sequence model: an embedding, a recipe's blocks, and an output layer.

    It maps symbols (batch, length) or numbers (batch, length, columns) to outputs. Outputs are logits (batch,
    length, vocab or classes), log-probabilities with an adaptive softmax, or numbers (batch, length,
    targets). After a pool they have no length dimension. A scaled embedding is multiplied by sqrt(d_model).
    The timing signal, if any, is added to the embedded inputs. It is added again to the residual stream
    before every sub-layer that mixes positions (the active memory paper's program).
    """

    def __init__(self, recipe: Recipe, config: ModelConfig) -> None:
        super().__init__(recipe, config)
        settings, interface = config.settings, config.interface
        self.output_scale = 1 / settings.relative_width
        self.scale = 1.0 if interface.columns is not None else settings.embedding_scale
        self.pooled = output_kind(recipe.root) == VECTOR
        self.embedding: nn.Module
        if interface.columns is not None:
            self.embedding = Linear(interface.columns, settings.d_model, bias=True)
        elif settings.cutoffs:
            self.embedding = AdaptiveEmbedding(config.clusters, settings.d_model, rule=settings.embedding)
        else:
            self.embedding = Embedding(interface.symbols, settings.d_model, rule=settings.embedding)
        self.positions = PositionalEncoding(config)
        self.body = build_body(recipe.root, Context(config=config))
        self.decoder = BottleneckDecoder(config) if interface.bottleneck else None
        self.norm = build_final_norm(config)
        self.output = _build_output_layer(config, self.embedding)
        self.input_dropout = Dropout(settings.input_dropout)
        self.output_act = None if settings.output_act == "none" else ACTIVATIONS[settings.output_act]

    def forward(self, inputs: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the outputs. `lengths` (batch,) are the numbers of valid positions; the rest is padding.

        Numbers at padding are arbitrary, but finite; the outputs there are arbitrary, too.

        Raise InputError for inputs or lengths of another shape. Lengths beyond the inputs are only found on
        the CPU: elsewhere, to read them would delay the computation.
        """
        return self._outputs(self._hidden(inputs, lengths))

    def outputs_at(self, inputs: Tensor, places: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return only the outputs (places, …) at `places`, which are flat indices into (batch, length)."""
        return self._outputs(take_places(self._hidden(inputs, lengths), places))

    def nll(self, inputs: Tensor, targets: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the negative log-likelihood of targets in nats.

        It is (batch, length), or (batch,) after a pool. It is 0 at padding, where targets are arbitrary and
        no output is computed. An adaptive softmax is only computed where needed.
        """
        mask = None if self.pooled else _mask(inputs, lengths)
        if mask is None:
            return self._nll(self._hidden(inputs, lengths), targets)
        places = find_places(mask)
        return fill_places(self.nll_at(inputs, targets.flatten()[places], places, lengths), places, targets)

    def nll_at(
        self, inputs: Tensor, targets: Tensor, places: Tensor, lengths: Tensor | None = None
    ) -> Tensor:
        """Return the negative log-likelihoods (places,) in nats of the targets at these flat indices."""
        return self._nll(take_places(self._hidden(inputs, lengths), places), targets)

    def forward_stream(self, inputs: Tensor, state: StreamState) -> tuple[Tensor, StreamState]:
        """Return the outputs for the next piece of each stream, and the new state.

        The model must be causal. Raise BuildError for a block with an unbounded past.
        """
        hidden, state = self._hidden_stream(inputs, state)
        return self._outputs(hidden), state

    def nll_stream(self, inputs: Tensor, targets: Tensor, state: StreamState) -> tuple[Tensor, StreamState]:
        """Return the `nll` for the next piece of each stream, and the new state."""
        hidden, state = self._hidden_stream(inputs, state)
        return self._nll(hidden, targets), state

    def attention(self, inputs: Tensor, lengths: Tensor | None = None) -> list[AttentionMap]:
        """Return the attention weights of each block that has some, as it uses them, without dropout.

        The arguments are those of `forward`. Raise BuildError if no block of the model has such weights.
        """
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad(), recording(self) as maps:
                self._hidden(inputs, lengths)
        finally:
            self.train(was_training)
        if not maps:
            raise BuildError("expected a model with attention, such as sa; no block of this one has weights")
        return maps

    def codes(self, inputs: Tensor) -> Tensor:
        """Return the body's output at each position, (batch, length, width), without the output layer."""
        x, signal = self._embed(inputs, 0)
        return self.body(x, SideInputs(signal=signal))

    def _hidden(self, inputs: Tensor, lengths: Tensor | None) -> Tensor:
        """Return the input of the output layer: (batch, length, width), or (batch, width) after a pool.

        An empty sequence is computed as one of length 1: a softmax over no position has no finite gradient.
        """
        mask = x = None
        columns = self.config.interface.columns
        shape = "symbols (batch, length)" if columns is None else f"numbers (batch, length, {columns})"
        _check_input("inputs", inputs, shape, columns)
        if lengths is not None:
            _check_lengths(lengths, inputs)
            lengths = lengths.clamp(min=1)
            mask = _mask(inputs, lengths)
        plain = self.config.settings.position == "none" and not (
            self.dropout.active or self.input_dropout.active or is_recording()
        )
        if plain and isinstance(self.embedding, Linear):  # may avoid storing the sequence of vectors
            x = try_fused_pooling(self.embedding, self.body, inputs, mask)
        if x is None:
            x, signal = self._embed(inputs, 0, lengths)
            x = self.body(x, SideInputs(mask, signal))
        x = self._normalise(x if self.decoder is None else self.decoder(x, lengths))
        return x.squeeze(1) if self.pooled else x

    def _hidden_stream(self, inputs: Tensor, state: StreamState) -> tuple[Tensor, StreamState]:
        if not self.config.interface.causal or self.decoder is not None:
            raise BuildError("expected a causal model for a stream, got one that sees the future")
        if self.positions.kind.by_length:
            raise BuildError(
                f"expected positions that work in an endless stream, got {self.config.settings.position}"
            )
        x, signal = self._embed(inputs, state.past_length)
        chunk = StreamChunk(state.block_states, zero_past=self.config.settings.zero_past)
        x = self._normalise(self.body(x, SideInputs(signal=signal, chunk=chunk)))
        return x, StreamState(state.past_length + inputs.shape[1], chunk.next_states())

    def _embed(
        self, inputs: Tensor, start: int, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the body's input (batch, length, width), and position vectors that it adds again, or None.

        Raise BuildError for sequences without positions, for which few blocks are defined.
        """
        if not inputs.shape[1]:
            raise BuildError(f"expected sequences of at least 1 position, got {tuple(inputs.shape)}")
        x = self.embedding(inputs)
        if self.scale != 1.0:
            x = x * self.scale
        if self.config.settings.embedding_dropout:
            x = self.dropout(x)
        x, signal = self.positions(x, start, lengths)
        return self.input_dropout(x) if self.config.settings.input_dropout else x, signal

    def _outputs(self, hidden: Tensor) -> Tensor:
        y = self.output(hidden)
        return y if self.output_act is None else self.output_act(y)

    def _normalise(self, x: Tensor) -> Tensor:
        y = x if self.norm is None else self.norm(x)
        if self.config.settings.embedding_dropout:
            y = self.dropout(y)
        return y if self.output_scale == 1.0 else y * self.output_scale

    def _nll(self, hidden: Tensor, targets: Tensor) -> Tensor:
        if self.config.interface.targets is not None:
            got = f"{self.config.interface.targets} numbers"
            raise BuildError(f"expected a model that predicts symbols, got one that predicts {got}")
        if isinstance(self.output, AdaptiveSoftmax):
            return self.output.nll(hidden, targets)
        logits = self.output(hidden)
        return functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none").view_as(
            targets
        )


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
        sources = interface.source_vocab or interface.symbols
        self.source = Embedding(sources, settings.d_model, rule=settings.embedding)
        self.target = Embedding(interface.symbols, settings.d_model, rule=settings.embedding)
        self.body = build_transducer_block(recipe.root, Context(config=config))
        self.output = Linear(
            self.body.output_width, interface.symbols, bias=settings.output_bias, bias_init=settings.bias_init
        )

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the logits of each symbol of the target, given the symbols before it.

        Raise InputError for tensors of another shape.
        """
        return self.output(self._hidden(source, target))

    def outputs_at(self, source: Tensor, target: Tensor, places: Tensor) -> Tensor:
        """Return only the logits (places, vocab) at `places`, which are flat indices into the target."""
        return self.output(take_places(self._hidden(source, target), places))

    def nll(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the negative log-likelihood of each target in nats, (batch, m); 0 at padding."""
        places = find_places(target != PAD)
        logits = self.outputs_at(source, target, places)
        lost = functional.cross_entropy(logits, target.flatten()[places], reduction="none")
        return fill_places(lost, places, target)

    def begin(self, source: Tensor, lengths: Tensor) -> State:
        """Return the state before the first symbol. `lengths` (batch,) are the lengths of the targets."""
        return self.body.begin(self._embed_source(source), _valid(source), lengths)

    def step(self, state: State, previous: Tensor) -> tuple[Tensor, State]:
        """Return logits (batch, vocab) of the symbol after `previous` (batch,), and the next state."""
        y, state = self.body.step(state, self._embed_target(previous))
        return self.output(self.dropout(y)), state

    def _embed_source(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.source(tokens) * self.scale)

    def _embed_target(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.target(tokens) * self.scale)

    def _hidden(self, source: Tensor, target: Tensor) -> Tensor:
        _check_input("source", source, "symbols (batch, n)")
        _check_input("target", target, "symbols (batch, m)")
        written = self._embed_target(shift_right(target))
        return self.dropout(
            self.body.call_unchecked(self._embed_source(source), written, _valid(source), _valid(target))
        )


def _valid(tokens: Tensor) -> Tensor:
    """Return a mask (batch, n); an empty sequence counts as one of length 1.

    A softmax over no position has no finite gradient.
    """
    valid = tokens != PAD
    valid[:, :1] = True
    return valid


def shift_right(target: Tensor) -> Tensor:
    """Shift a target (batch, m) right by one, with the start symbol first."""
    return torch.cat([torch.full_like(target[:, :1], PAD), target[:, :-1]], 1)


def transduction_faults(config: ModelConfig) -> Iterator[str]:
    """Yield messages about settings that a transduction model does not support."""
    settings, interface = config.settings, config.interface
    if interface.columns is not None or interface.targets is not None:
        yield "a transducer needs symbols as inputs and outputs, got numbers"
    if interface.classes is not None:
        yield "a transducer needs symbols as outputs, got classes"
    if settings.cutoffs:
        yield "expected no cutoffs in a transducer: its vocabularies have no common clusters"
    if settings.input_dropout:
        yield "expected no input_dropout in a transducer: embedding_dropout applies to its inputs"
    if settings.position_kind.by_length:
        yield f"expected no {settings.position} positions in a transducer"
    if interface.bottleneck:
        yield "expected no bottleneck in a transducer, got one"
    if settings.residual_init != "plain":
        yield f"expected residual_init plain in a transducer, got {settings.residual_init}"
    if settings.tied:
        yield "expected weights that are not tied: the output is not as wide as an embedding"


def build(
    recipe: str | Recipe,
    config: ModelConfig | None = None,
    *,
    generator: torch.Generator | None = None,
    max_parameters: int | None = MAX_PARAMETERS,
    **settings: object,
) -> Model | TransductionModel:
    """Build the model of a recipe.

    Keywords set or change parts of the config, which `BuildSettings` and `ModelInterface` describe:

    - inputs and outputs: `vocab`, `source_vocab`, `columns`, `targets`, `classes`, `causal`, `bottleneck`
    - body: `d_model`, `norm`, `norm_kind`, `norm_eps`, `residual`, `position`, `max_positions`, `zero_past`
    - dropout: `dropout`, `attention_dropout`, `embedding_dropout`, `input_dropout`, `feedforward_dropout`
    - weights: `init`, `bias_init`, `residual_init`, `embedding`, `feedforward_std`, `attention_std`,
      `attention_output_std`, `mup`
    - embedding and output: `tied`, `tied_bias`, `output_bias`, `output_act`, `cutoffs`,
      `project_first_cluster`

    A transducer gives a model of a source and a target, both of symbols. Weights are drawn from `generator`
    (CPU), or from the global one; modules of torch, such as `nn.Linear`, keep torch's rule. Padding vectors
    start Glorot uniform, norms with gain 1 and offset 0.

    A model with more than `max_parameters` parameters is refused before anything is allocated. None sets no
    limit. Raise RecipeError for a wrong text, and BuildError with all reasons for a model that cannot be
    built.
    """
    check_arguments(
        number_fault("max_parameters", max_parameters, least=1, optional=True),
        argument_fault("generator", generator, (torch.Generator, type(None)), "a torch.Generator"),
        error=BuildError,
    )
    recipe = parse(recipe)
    try:
        config = configure(config, **settings)
    except ModelConfigError as error:
        raise _build_error(recipe, [*_recipe_faults(recipe), *error.faults]) from None
    with drawn_by(generator):
        model = _assemble(recipe, config, max_parameters)
    initialise(model, generator, config.settings.init, uniform_bias=config.settings.bias_init == "uniform")
    if config.settings.mup is not None and isinstance(model, Model) and isinstance(model.output, Linear):
        widen_output(model.output, config.settings.mup, config.settings.init)
    if isinstance(model, Model) and config.settings.residual_init != "plain":
        _scale_last_maps(model.body, config.settings.residual_init)
    return model


@torch.no_grad()
def _scale_last_maps(body: ResidualStack, rule: ResidualInit) -> None:
    """Divide the last map of each sub-layer by √(number of sub-layers), or set it to zero.

    Division keeps the scale of their sum (Radford et al. 2019, GPT-2, section 2.3). With zeros, the model
    begins as the identity (Zhang et al. 2019, Fixup). Blocks that do not end with a map keep their weights.
    """
    for block in body.modules():
        if isinstance(block, Block) and block.last_map is not None:
            last = block.last_map
            if rule == "depth":
                last.weight.div_(math.sqrt(len(body.order)))
                continue
            for parameter in last.parameters():  # a bias would be added to the identity
                parameter.zero_()


def build_on_meta(recipe: str | Recipe, config: ModelConfig) -> Model | TransductionModel:
    """Build the model on the meta device, where tensors have shapes but no values or memory.

    Raise RecipeError and BuildError as `build` does.
    """
    with torch.device("meta"):
        return _assemble(parse(recipe), config, None)


def _assemble(recipe: Recipe, config: ModelConfig, max_parameters: int | None) -> Model | TransductionModel:
    transduces = output_kind(recipe.root) == OTHER_LENGTH
    _check(recipe, config, max_parameters, transduces=transduces)
    return TransductionModel(recipe, config) if transduces else Model(recipe, config)


def _check(recipe: Recipe, config: ModelConfig, max_parameters: int | None, *, transduces: bool) -> None:
    faults = _recipe_faults(recipe)
    if config.interface.source_vocab is not None and not transduces:
        faults.append(f"expected a transducer, such as seq2seq(lstm, lstm), got {recipe.text}")
    if config.interface.bottleneck and output_kind(recipe.root) == VECTOR:
        faults.append(f"a bottleneck needs an output for each token, got {recipe.text}")
    faults += [*config.faults(), *(transduction_faults(config) if transduces else ())]
    if (fault := pair_position_fault(recipe.root, config.settings.position)) is not None and not transduces:
        faults.append(fault)
    if not faults and max_parameters is not None:
        parameters = count_parameters(recipe, config)
        if parameters > max_parameters:
            faults = [f"expected at most {max_parameters:,} parameters (max_parameters), got {parameters:,}"]
    if faults:
        raise _build_error(recipe, faults)


def _build_error(recipe: Recipe, faults: Sequence[str]) -> BuildError:
    lines = (f"  {fault}" for fault in faults)
    return BuildError("\n".join([f"recipe '{recipe.text}' cannot be built", *lines]))


def _build_output_layer(config: ModelConfig, embedding: nn.Module) -> nn.Module:
    settings, interface = config.settings, config.interface
    if not interface.predicts_symbols:
        return Linear(
            settings.d_model, config.outputs, bias=settings.output_bias, bias_init=settings.bias_init
        )
    if settings.cutoffs:
        tied = embedding if settings.tied and isinstance(embedding, AdaptiveEmbedding) else None
        return AdaptiveSoftmax(
            config.clusters,
            settings.d_model,
            tied,
            bias=settings.output_bias if tied is None else settings.tied_bias,
            bias_init=settings.bias_init,
        )
    if settings.tied and isinstance(embedding, Embedding):
        return TiedLinear(embedding.weight, bias=settings.tied_bias, bias_init=settings.bias_init)
    return Linear(
        settings.d_model, interface.symbols, bias=settings.output_bias, bias_init=settings.bias_init
    )


def _check_input(name: str, tensor: object, expected: str, last: int | None = None) -> None:
    """Raise InputError unless this is a tensor (batch, length) or, with `last`, (batch, length, last)."""
    if not isinstance(tensor, Tensor):
        raise InputError(f"{name}: expected a tensor of {expected}, got {describe_value(tensor)}")
    if tensor.dim() != (2 if last is None else 3) or last not in (None, tensor.shape[-1]):
        raise InputError(f"{name}: expected {expected}, got a tensor of shape {tuple(tensor.shape)}")


def _check_lengths(lengths: object, inputs: Tensor) -> None:
    """Raise InputError unless there is a whole number for each sequence, from 0 to its length.

    The numbers of a tensor on a GPU, or in a compiled program, are not read.
    """
    batch, longest = inputs.shape[:2]
    if isinstance(lengths, Tensor):
        is_whole = not (lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool)
        is_known = (
            lengths.device.type == "cpu" and not torch.compiler.is_compiling() and type(lengths) is Tensor
        )
        if lengths.shape == inputs.shape[:1] and is_whole:
            known = lengths.tolist() if is_known else []
            if min(known, default=0) >= 0 and max(known, default=0) <= longest:
                return
        got = shorten(repr(lengths), 60, placeholder=" …")
    else:
        got = describe_value(lengths)
    expected = f"a tensor of shape ({batch},), a whole number from 0 to {longest} for each sequence"
    raise InputError(f"lengths: expected {expected}, got {got}")


def _mask(inputs: Tensor, lengths: Tensor | None) -> Tensor | None:
    """Return a mask (batch, length) that is true at valid positions; None if all are valid."""
    if lengths is None:
        return None
    return torch.arange(inputs.shape[1], device=inputs.device) < lengths[:, None]


def _recipe_faults(recipe: Recipe) -> list[str]:
    """Return a message for each hole, open dimension and block without a module."""
    faults = [f"hole {{{name}}} is not filled" for name in recipe.holes]
    faults += [f"search dimension {path} has no value" for path, _ in recipe.dimensions]
    for name in dict.fromkeys(
        node.name for node in nodes.walk(recipe.root) if isinstance(node, nodes.BlockNode)
    ):
        spec = lookup(name)
        transduces = spec is not None and spec.role is Role.TRANSDUCER
        if name not in (TRANSDUCERS if transduces else BLOCKS):
            faults.append(f"{'transducer' if transduces else 'block'} '{name}' has no registered module")
    return faults
