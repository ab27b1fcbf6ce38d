"""The configuration of a model apart from its recipe: embedding, output, and settings for all sub-layers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Literal, get_args

from ..errors import ActivememError, argument_fault, hint
from ..plugins import Registry
from .norms import NORMS
from .positions import MAX_POSITIONS, POSITIONS, PositionKind, SizedPosition

Norm = Literal["pre", "post", "none"]
"""The position of a sub-layer's normalisation: before the sub-layer, after its residual sum, or none."""

EmbeddingInit = Literal["scaled", "unit", "unit_scaled", "uniform", "unit_uniform"]
"""Initialisation of embeddings, and whether they are multiplied by √d_model when used.

- "scaled": N(0, 1 / width), multiplied.
- "unit": N(0, 1).
- "unit_scaled": N(0, 1), multiplied.
- "uniform": U(-0.05, 0.05).
- "unit_uniform": U(-1.7, 1.7).
"""

Init = Literal["glorot", "he", "lecun", "uniform"]
"""Initialisation of matrices: Glorot uniform, N(0, 2 / inputs), N(0, 1 / inputs) or uniform within ±1 /
√inputs."""

BiasInit = Literal["zero", "glorot", "uniform"]
"""Initialisation of biases.

- "zero": all are 0.
- "glorot": biases of convolutions and of the output layer are Glorot uniform.
- "uniform": biases of all maps and convolutions are uniform within 1 / √inputs, as in torch.
"""

ResidualInit = Literal["plain", "depth", "zero"]
"""Initialisation of each sub-layer's last matrix: plain, divided by the root of the number of sub-layers, or
zero."""

OutputActivation = Literal["none", "relu", "gelu", "gelu_tanh", "tanh", "leaky_relu"]
"""The activation after the output layer, for models whose outputs are real numbers."""

Rule = tuple[bool, str]
"""A condition's result, and the message if it is false."""

MAX_DROPOUT = 0.9999
"""The maximum dropout probability: the numbers that dropout keeps are divided by 1 minus the probability."""

CLUSTER_WIDTH_DIVISOR = 4
"""The factor by which each cluster's embeddings are narrower than the previous cluster's."""


class ModelConfigError(ActivememError):
    """Error that lists the invalid or contradictory settings of a model."""

    @classmethod
    def of_faults(cls, faults: list[str]) -> ModelConfigError:
        """Return an error whose message lists these faults, one on each line."""
        return cls("\n".join(["the model cannot be built", *(f"  {fault}" for fault in faults)]))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The settings of a model apart from its recipe.

    Inputs and outputs:

    - Inputs are symbols of `vocab`, or `columns` real numbers at each position.
    - Outputs are a distribution over `vocab` or over `classes`, or `targets` real numbers.
    - A model that maps a source to a target reads symbols of `source_vocab`, by default of `vocab`.
    - `cutoffs` divide the vocabulary into clusters, by falling frequency, in the input and in the softmax.
    - The first cluster is as wide as the model; `project_first_cluster` still adds a map.
    - A `tied` softmax shares the embedding's weights, and has biases only with `tied_bias`.
    - A softmax that is not tied has biases unless `output_bias` is false.
    - Logits stay within `logit_cap`, if it is set.
    - With a `bottleneck`, the outputs of all positions are decoded from the last position only.

    Weights and positions:

    - `feedforward_std` is the initial standard deviation of the maps of feed-forward blocks, as in N(0, s²).
    - `attention_std` is the initial standard deviation of the maps to queries, keys and values of `sa`.
    - `attention_output_std` is the initial standard deviation of the output maps of `sa`.
    - With `residual_init` depth, the last map of each sub-layer is divided by the root of their number; with
      zero, it is zero.
    - `mup` is the width at which maximal updates change nothing.
    - `max_positions` is the number of learned or randomised positions.
    - With `zero_past`, zero vectors fill the past of each block at the beginning of a stream.
    """

    d_model: int
    vocab: int | None = None
    source_vocab: int | None = None
    causal: bool = False
    norm: Norm = "pre"
    residual: bool = True
    norm_kind: str = "layer_norm"
    position: str = "timing"
    max_positions: int = MAX_POSITIONS
    dropout: float = 0.1
    attention_dropout: float = 0.0
    embedding_dropout: float = 0.0
    input_dropout: float = 0.0
    feedforward_dropout: float | None = None
    norm_eps: float = 1e-5
    embedding: EmbeddingInit = "scaled"
    tied: bool = False
    tied_bias: bool = False
    cutoffs: tuple[int, ...] = ()
    project_first_cluster: bool = False
    init: Init = "glorot"
    feedforward_std: float | None = None
    attention_std: float | None = None
    attention_output_std: float | None = None
    bias_init: BiasInit = "zero"
    residual_init: ResidualInit = "plain"
    columns: int | None = None
    targets: int | None = None
    classes: int | None = None
    output_act: OutputActivation = "none"
    output_bias: bool = True
    logit_cap: float | None = None
    zero_past: bool = False
    mup: int | None = None
    bottleneck: bool = False

    def __post_init__(self) -> None:
        # wrong types are refused at once, because the checks of bounds cannot compare them
        if faults := _type_faults({name: getattr(self, name) for name in _field_types()}):
            raise ModelConfigError.of_faults(faults)

    def faults(self) -> list[str]:
        """Return messages about settings that are out of bounds or contradictory; none if all are valid."""
        rules = (*self._bounds(), *self._words(), *self._inputs_and_outputs(), *self._maximal_updates())
        return [fault for holds, fault in rules if not holds]

    def check(self) -> None:
        """Raise ModelConfigError with all faults if there are any."""
        faults = self.faults()
        if faults:
            raise ModelConfigError.of_faults(faults)

    @property
    def symbols(self) -> int:
        """Return the size of the vocabulary; 0 if the model does not use symbols."""
        return self.vocab or 0

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

    @property
    def source(self) -> ModelConfig:
        """Return the config for the source embedding.

        Its `vocab` is `source_vocab`. If `source_vocab` is not set, it is this config itself.
        """
        return self if self.source_vocab is None else replace(self, vocab=self.source_vocab)

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """Return the clusters of the vocabulary, split at `cutoffs`."""
        ends = pairwise((0, *self.cutoffs, self.symbols))
        return tuple(
            Cluster(
                start=start,
                end=end,
                width=self.d_model // CLUSTER_WIDTH_DIVISOR**place,
                projected=place > 0 or self.project_first_cluster,
            )
            for place, (start, end) in enumerate(ends)
        )

    @property
    def outputs(self) -> int:
        """Return the number of outputs at each position.

        With clusters, this counts the first cluster's symbols and one output for each other cluster.
        """
        if self.targets is not None:
            return self.targets
        return self.clusters[0].size + len(self.cutoffs) if self.classes is None else self.classes

    @property
    def predicts_symbols(self) -> bool:
        """Return whether the output is a distribution over the symbols of the vocabulary."""
        return self.targets is None and self.classes is None

    def _bounds(self) -> Iterator[Rule]:
        for name in ("d_model", "vocab", "source_vocab", "columns", "targets", "classes", "max_positions"):
            size = getattr(self, name)
            yield size is None or size >= 1, f"expected {name} of at least 1, got {size}"
        for name in (*_RATES, "feedforward_dropout"):
            rate = getattr(self, name)
            fits = rate is None or 0 <= rate <= MAX_DROPOUT
            yield fits, f"expected {name} from 0 to {MAX_DROPOUT}, got {rate}"
        for name in ("norm_eps", "feedforward_std", "attention_std", "attention_output_std", "logit_cap"):
            number = getattr(self, name)
            yield number is None or number > 0, f"expected {name} above 0, got {number}"

    def _words(self) -> Iterator[Rule]:
        for name, kind in _WORDS.items():
            value = getattr(self, name)
            if value not in (kind if isinstance(kind, Registry) else get_args(kind)):
                *first, last = tuple(kind) if isinstance(kind, Registry) else get_args(kind)
                words = f"{', '.join(first)} or {last}" if first else last
                yield False, f"expected {name} to be {words}, got '{value}'"

        yield (
            self.residual or self.residual_init != "zero",
            "residual_init zero needs residual connections, got none",
        )

    def _inputs_and_outputs(self) -> Iterator[Rule]:
        has_classes, clustered = self.classes is not None, bool(self.cutoffs)
        given = "classes" if has_classes else "symbols"
        yield (
            self.vocab is not None or (self.columns is not None and not self.predicts_symbols),
            "expected vocab, or columns and targets, got neither",
        )
        yield (
            self.targets is None or not has_classes,
            f"expected either targets or classes, got both: {self.targets} and {self.classes}",
        )
        yield (
            self.output_act == "none" or self.targets is not None,
            f"output_act = {self.output_act} needs targets, got {given}",
        )
        yield (
            self.logit_cap is None or (self.targets is None and not clustered),
            f"logit_cap needs logits as outputs, got {'clusters' if clustered else 'numbers'}",
        )
        symbols, given = (
            self.columns is None and self.predicts_symbols,
            "classes" if has_classes else "numbers",
        )
        yield (
            symbols or not self.tied,
            f"tied weights need symbols as inputs and outputs, got {given}",
        )
        yield symbols or not clustered, f"cutoffs need symbols as inputs and outputs, got {given}"
        yield (
            self.output_bias or not self.tied,
            "output_bias=False needs weights that are not tied, got tied weights",
        )
        yield (
            self.tied or not self.tied_bias,
            "tied_bias needs tied weights, got none",
        )
        yield (
            clustered or not self.project_first_cluster,
            "project_first_cluster needs cutoffs, got none",
        )
        if clustered:
            ends = (0, *self.cutoffs, *(() if self.vocab is None else (self.vocab,)))
            cut = ", ".join(map(str, self.cutoffs))
            rising = all(low < high for low, high in pairwise(ends))
            below = "" if self.vocab is None else f" below {self.vocab}, the size of the vocabulary"
            yield rising, f"expected increasing cutoffs{below}, got {cut}"
            count, narrowest = len(self.cutoffs), CLUSTER_WIDTH_DIVISOR ** len(self.cutoffs)
            plural = f"{count} cut-off" + ("" if count == 1 else "s")
            yield (
                self.d_model >= narrowest,
                f"expected d_model of at least {narrowest} for {plural}, got {self.d_model}",
            )

    def _maximal_updates(self) -> Iterator[Rule]:
        """Yield the rules that a model with `mup` (maximal update parametrisation) must follow.

        Each is a condition, and the message if it fails.
        """
        if self.mup is not None:
            scaled = self.embedding_scale != 1.0 and self.columns is None
            yield self.mup >= 1, f"expected mup of at least 1, got {self.mup}"
            yield not scaled, f"mup needs an embedding such as unit, got {self.embedding}"
            yield not self.cutoffs, "mup cannot be combined with cutoffs"
            yield (
                self.source_vocab is None,
                "mup needs a model of one sequence, got a source and a target",
            )


_RATES = ("dropout", "attention_dropout", "embedding_dropout", "input_dropout")
_WORDS: dict[str, Any] = {
    "norm": Norm,
    "norm_kind": NORMS,
    "position": POSITIONS,
    "embedding": EmbeddingInit,
    "init": Init,
    "bias_init": BiasInit,
    "residual_init": ResidualInit,
    "output_act": OutputActivation,
}


def configure(config: ModelConfig | None, settings: Mapping[str, Any]) -> ModelConfig:
    """Return a copy of the config with these settings changed, or a new config if `config` is None.

    Raise ModelConfigError for unknown names and for values of another type.
    """
    names = _field_types().keys()
    unknown = [name for name in settings if name not in names]
    faults = [f"unknown setting '{name}'{hint(name, names)}" for name in unknown]
    faults += _type_faults({name: value for name, value in settings.items() if name in names})
    if (fault := argument_fault("config", config, (ModelConfig, type(None)))) is not None:
        faults.append(fault)
    elif config is None and "d_model" not in settings:
        faults.append("d_model is missing, for example d_model=64")
    if faults:
        raise ModelConfigError.of_faults(faults)
    if config is None:
        return ModelConfig(**settings)
    return replace(config, **settings) if settings else config


def _type_faults(settings: Mapping[str, object]) -> list[str]:
    faults: list[str | None] = []
    for name, (kind, expected, default, is_optional) in _field_types().items():
        value = settings.get(name, default)
        if value is default or (is_optional and value is None):
            continue
        faults.append(argument_fault(name, value, kind, expected))
        if isinstance(value, tuple):
            faults += [argument_fault(name, each, Integral, expected) for each in value]
    return [fault for fault in faults if fault is not None]


@cache
def _field_types() -> dict[str, tuple[type, str, object, bool]]:
    """Return the type of each field, its name in messages, its default, and whether it may be None."""
    found: dict[str, tuple[type, str, object, bool]] = {}
    for field in fields(ModelConfig):
        name, _, optional = str(field.type).partition(" | ")
        found[field.name] = (*_KINDS.get(name, (str, "a word")), field.default, bool(optional))
    return found


_KINDS: dict[str, tuple[type, str]] = {
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "bool": (bool, "True or False"),
    "tuple[int, ...]": (tuple, "a tuple of whole numbers"),
}
"""The types of fields, with their names in messages; all other fields are words."""
