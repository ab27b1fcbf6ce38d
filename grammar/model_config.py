"""The configuration of a model apart from its recipe: embedding, output, and settings for all sub-layers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from ..errors import (
    ActivememError,
    argument_fault,
    describe_value,
    nearest_hint,
    plain_value,
    replace_unprintable,
    validation_fault,
)
from .norms import NORMS
from .positions import MAX_POSITIONS, POSITIONS, PositionKind, SizedPosition
from .vocabulary.spec import block_with_word

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Norm = Literal["pre", "post", "none"]
"""The position of a sub-layer's normalisation: before the sub-layer, after its residual sum, or none."""

EmbeddingInit = Literal["scaled", "unit", "unit_scaled", "uniform", "unit_uniform"]
"""Initialisation of embeddings, and whether they are multiplied by √d_model when used."""

Init = Literal["glorot", "he", "lecun", "uniform"]
"""Initialisation of matrices."""

BiasInit = Literal["zero", "glorot", "uniform"]
"""Initialisation of biases."""

ResidualInit = Literal["plain", "depth", "zero"]
"""Initialisation of each sub-layer's last matrix."""

OutputActivation = Literal["none", "relu", "gelu", "gelu_tanh", "tanh", "leaky_relu"]
"""The activation after the output layer, for models whose outputs are real numbers."""

MAX_DROPOUT = 0.9999
"""The maximum dropout probability: the numbers that dropout keeps are divided by 1 minus the probability."""

MAX_D_MODEL = 65536
"""The largest width of a model."""

CLUSTER_WIDTH_DIVISOR = 4
"""The factor by which each cluster's embeddings are narrower than the previous cluster's."""


class ModelConfigError(ActivememError):
    """Error that lists the invalid or contradictory settings of a model, one on each line."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__(faults)
        self.faults = faults

    def __str__(self) -> str:
        lines = ["the model cannot be built", *(f"  {fault}" for fault in self.faults)]
        return replace_unprintable("\n".join(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster of a vocabulary: a range of symbols whose embeddings have the same width.

    The symbols are `start` to `end` - 1. A `projected` cluster has a linear map to the model's width, and in
    the softmax a map back.
    """

    start: int
    end: int
    width: int
    projected: bool

    @property
    def size(self) -> int:
        """Return the number of symbols in the cluster."""
        return self.end - self.start


class _ConfigPart(BaseModel):
    """Base class of the parts of a model's config."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


class BuildSettings(_ConfigPart):
    """The settings with which a recipe becomes a model: the keys of a study's `[model]` except `recipe`."""

    d_model: int = Field(ge=1, le=MAX_D_MODEL)
    """width of the model"""
    norm: Norm = "pre"
    """where a sub-layer is normalised: pre, its input; post, the sum with its input; or none"""
    residual: bool = True
    """whether each sub-layer's output is added to its input"""
    norm_kind: Annotated[str, AfterValidator(NORMS.check)] = "layer_norm"
    """the kind of norm: layer_norm or rms_norm"""
    position: str = "timing"
    """the positional information: timing, sinusoids added before every mixer; learned, vectors added to
    embeddings; randomised, sinusoids at random increasing positions below `max_positions`, drawn for each
    batch (Ruoss et al. 2023); randomised_pairs, the same numbers in mixers that compare positions, such as
    sa(pos=rope); or none"""
    max_positions: int = Field(default=MAX_POSITIONS, ge=1, le=1 << 20)
    """for learned: the number of positions; for randomised ones: the range from which positions are drawn;
    otherwise without effect"""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """probability of dropping an activation, after each sub-layer and inside feed-forward blocks"""
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    """probability of dropping an attention weight"""
    embedding_dropout: float = Field(default=0.0, ge=0, lt=1)
    """probability of dropping an element of an embedding, or of the output layer's input"""
    input_dropout: float = Field(default=0.0, ge=0, lt=1)
    """probability of dropping an element of the body's input, positions included"""
    feedforward_dropout: float | None = Field(default=None, ge=0, lt=1)
    """probability of dropping an activation inside feed-forward blocks; by default `dropout`"""
    norm_eps: float = Field(default=1e-5, gt=0, allow_inf_nan=False)
    """the constant added to the variance in a norm"""
    embedding: EmbeddingInit = "scaled"
    """how embeddings are initialised: scaled: N(0, 1 / d_model), multiplied by √d_model when used; unit: N(0,
    1); unit_scaled: N(0, 1), multiplied by √d_model when used; uniform: U(-0.05, 0.05); unit_uniform: U(-1.7,
    1.7)"""
    tied: bool = False
    """whether the output layer shares the embedding's weights"""
    tied_bias: bool = False
    """whether a tied output layer has biases, one for each symbol and each cluster"""
    cutoffs: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False)] = ()
    """adaptive input and softmax: the first symbols of the clusters of rare symbols; each cluster is a
    quarter as wide as the one before"""
    project_first_cluster: bool = False
    """whether the embeddings of the first cluster, already as wide as the model, are also projected"""
    init: Init = "glorot"
    """how matrices are initialised: glorot (uniform), he: N(0, 2 / inputs), lecun: N(0, 1 / inputs), or
    uniform within ±1 / √inputs"""
    feedforward_std: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the standard deviation of the normal distribution from which the matrices of `ff` are drawn (default:
    they are drawn as `init` says)"""
    attention_std: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """like `feedforward_std`, for the query, key and value matrices of `sa` without relative positions"""
    attention_output_std: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """like `feedforward_std`, for the output matrices of `sa`"""
    bias_init: BiasInit = "zero"
    """how biases are initialised: zero; glorot: uniform for convolutions and the output layer, zero
    elsewhere; uniform: within ±1 / √inputs for all matrices and convolutions, as torch does"""
    residual_init: ResidualInit = "plain"
    """how the last matrix of each sub-layer is initialised: plain, by its rule; depth: divided by the square
    root of the number of sub-layers, as in GPT-2; zero: 0, as is its bias, so that the model begins as the
    identity (needs residual connections)"""
    output_act: OutputActivation = "none"
    """for tasks with numbers: the activation after the output layer"""
    output_bias: bool = True
    """whether an untied output layer has biases"""
    mup: int | None = Field(default=None, ge=1, le=MAX_D_MODEL)
    """maximal update parametrisation (Yang et al. 2022, Table 8): the base d_model, at which a model is
    unchanged except that attention logits are divided by head_width / 8. At another d_model the body's
    matrices get the learning rate of [train] times mup / d_model, the output is multiplied by the same
    factor, and its weights are initialised as at the base width"""
    zero_past: bool = False
    """for texts in streams: whether blocks see zero vectors before the beginning, instead of nothing"""

    @field_validator("position")
    @classmethod
    def _check_position(cls, name: str) -> str:
        if name not in POSITIONS and (example := block_with_word(name)):
            raise ValueError(f"unknown position '{name}'; write it in the recipe, as in {example}")
        return POSITIONS.check(name)

    @field_validator("max_positions")
    @classmethod
    def _omit_without_effect(cls, count: int, info: ValidationInfo) -> int:
        """Use the default of `max_positions` if the model ignores it. Equal models then have the same id."""
        kind = POSITIONS.get(info.data.get("position", ""))
        return count if isinstance(kind, SizedPosition) else MAX_POSITIONS

    @field_validator(
        "dropout", "attention_dropout", "embedding_dropout", "input_dropout", "feedforward_dropout"
    )
    @classmethod
    def _check_rate(cls, rate: float | None) -> float | None:
        if rate is not None and rate > MAX_DROPOUT:
            raise ValueError(f"expected at most {MAX_DROPOUT}, got {rate}")
        return rate

    @property
    def position_kind(self) -> PositionKind:
        """Return the positional encoding that `position` names, for at most `max_positions` positions."""
        kind = POSITIONS[self.position]
        return type(kind)(self.max_positions) if isinstance(kind, SizedPosition) else kind

    @property
    def embedding_scale(self) -> float:
        """Return the factor by which the model multiplies an embedding when it reads a symbol."""
        return math.sqrt(self.d_model) if self.embedding in ("scaled", "unit_scaled") else 1.0

    @property
    def relative_width(self) -> float:
        """Return how many times wider the model is than the base width `mup`; 1 if `mup` is not set."""
        return 1.0 if self.mup is None else self.d_model / self.mup

    @property
    def inner_dropout(self) -> float:
        """Return the dropout rate inside feed-forward blocks: `feedforward_dropout`, or else `dropout`."""
        return self.dropout if self.feedforward_dropout is None else self.feedforward_dropout


class ModelInterface(_ConfigPart):
    """What a task requires of its model: the kind and the sizes of inputs and outputs.

    Inputs are symbols, or real numbers. Outputs are a distribution over symbols or classes, or real numbers.
    """

    vocab: int | None = Field(default=None, ge=1)
    """the number of symbols; in a model of a source and a target, the symbols of the target"""
    source_vocab: int | None = Field(default=None, ge=1)
    """the number of symbols of the source (default: `vocab`)"""
    columns: int | None = Field(default=None, ge=1)
    """for inputs of real numbers: how many there are at each position"""
    targets: int | None = Field(default=None, ge=1)
    """for outputs of real numbers: how many there are"""
    classes: int | None = Field(default=None, ge=1)
    """for outputs that are classes: the number of classes"""
    causal: bool = False
    """whether an output must not depend on later inputs"""
    bottleneck: bool = False
    """whether the outputs of all positions are decoded from the last position only"""

    @property
    def symbols(self) -> int:
        """Return the size of the vocabulary; 0 if the model does not use symbols."""
        return self.vocab or 0

    @property
    def predicts_symbols(self) -> bool:
        """Return whether the output is a distribution over the symbols of the vocabulary."""
        return self.targets is None and self.classes is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """All that a model is built from besides its recipe; `configure` makes one from keywords."""

    settings: BuildSettings
    interface: ModelInterface

    def faults(self) -> list[str]:
        """Return messages about settings that contradict each other or the interface; none if all fit."""
        return [*self._faults_of_inputs_and_outputs(), *self._faults_of_maximal_updates()]

    def check(self) -> None:
        """Raise ModelConfigError with all faults if there are any."""
        faults = self.faults()
        if faults:
            raise ModelConfigError(faults)

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """Return the clusters of the vocabulary, split at `cutoffs`."""
        ends = pairwise((0, *self.settings.cutoffs, self.interface.symbols))
        return tuple(
            Cluster(
                start=start,
                end=end,
                width=self.settings.d_model // CLUSTER_WIDTH_DIVISOR**place,
                projected=place > 0 or self.settings.project_first_cluster,
            )
            for place, (start, end) in enumerate(ends)
        )

    @property
    def outputs(self) -> int:
        """Return the number of outputs at each position.

        With clusters, this counts the first cluster's symbols and one output for each other cluster.
        """
        if self.interface.targets is not None:
            return self.interface.targets
        return (
            self.clusters[0].size + len(self.settings.cutoffs)
            if self.interface.classes is None
            else self.interface.classes
        )

    def _faults_of_inputs_and_outputs(self) -> Iterator[str]:
        settings, interface = self.settings, self.interface
        has_classes, clustered = interface.classes is not None, bool(settings.cutoffs)
        if not settings.residual and settings.residual_init == "zero":
            yield "residual_init zero needs residual connections, got none"
        if interface.vocab is None and (interface.columns is None or interface.predicts_symbols):
            yield "expected vocab, or columns and targets, got neither"
        if interface.targets is not None and has_classes:
            both = f"{interface.targets} and {interface.classes}"
            yield f"expected either targets or classes, got both: {both}"
        if settings.output_act != "none" and interface.targets is None:
            given = "classes" if has_classes else "symbols"
            yield f"output_act = {settings.output_act} needs targets, got {given}"
        if interface.columns is not None or not interface.predicts_symbols:
            given = "classes" if has_classes else "numbers"
            if settings.tied:
                yield f"tied weights need symbols as inputs and outputs, got {given}"
            if clustered:
                yield f"cutoffs need symbols as inputs and outputs, got {given}"
        if settings.tied and not settings.output_bias:
            yield "output_bias=False needs weights that are not tied, got tied weights"
        if settings.tied_bias and not settings.tied:
            yield "tied_bias needs tied weights, got none"
        if settings.project_first_cluster and not clustered:
            yield "project_first_cluster needs cutoffs, got none"
        if clustered:
            yield from self._faults_of_clusters()

    def _faults_of_clusters(self) -> Iterator[str]:
        cutoffs, vocab = self.settings.cutoffs, self.interface.vocab
        ends = (0, *cutoffs, *(() if vocab is None else (vocab,)))
        if any(low >= high for low, high in pairwise(ends)):
            below = "" if vocab is None else f" below {vocab}, the size of the vocabulary"
            yield f"expected increasing cutoffs{below}, got {', '.join(map(str, cutoffs))}"
        count, narrowest = len(cutoffs), CLUSTER_WIDTH_DIVISOR ** len(cutoffs)
        if self.settings.d_model < narrowest:
            plural = f"{count} cut-off" + ("" if count == 1 else "s")
            yield f"expected d_model of at least {narrowest} for {plural}, got {self.settings.d_model}"

    def _faults_of_maximal_updates(self) -> Iterator[str]:
        settings, interface = self.settings, self.interface
        if settings.mup is None:
            return
        if settings.embedding_scale != 1.0 and interface.columns is None:
            yield f"mup needs an embedding such as unit, got {settings.embedding}"
        if settings.cutoffs:
            yield "mup cannot be combined with cutoffs"
        if interface.source_vocab is not None:
            yield "mup needs a model of one sequence, got a source and a target"


class _Keywords(ModelInterface, BuildSettings):
    """The settings and the interface as the keywords of `configure`, all checked at once."""


def configure(config: ModelConfig | None = None, **keywords: object) -> ModelConfig:
    """Return a config with these settings and parts of the interface, such as `d_model=64, vocab=20`.

    The others are taken from `config` if it is given, and otherwise have their defaults. Raise
    ModelConfigError with all unknown names, wrong types and values out of bounds.
    """
    if (fault := argument_fault("config", config, (ModelConfig, type(None)))) is not None:
        raise ModelConfigError([fault])
    given: dict[str, Any] = {} if config is None else vars(config.settings) | vars(config.interface)
    try:
        checked = vars(_Keywords(**given | {name: plain_value(value) for name, value in keywords.items()}))
    except ValidationError as error:
        raise ModelConfigError([_fault(each) for each in error.errors()]) from None
    interface = ModelInterface(**{name: checked.pop(name) for name in ModelInterface.model_fields})
    return ModelConfig(settings=BuildSettings(**checked), interface=interface)


def _fault(error: ErrorDetails) -> str:
    name = str(error["loc"][0])
    match error["type"]:
        case "extra_forbidden":
            return f"unknown setting '{name}'{nearest_hint(name, _Keywords.model_fields)}"
        case "missing":
            return f"{name} is missing, for example {name}=64"
        case _:
            return f"{name}: {validation_fault(error, describe_value(error['input']))}"
