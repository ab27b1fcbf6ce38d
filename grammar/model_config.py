"""The settings outside the body of a model, and those that all of its sub-layers share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Literal, TypedDict, get_args

from ..diagnostics import hint
from ..errors import ActivememError, argument_fault
from ..plugins import Registry
from .norms import NORMS
from .positions import MAX_POSITIONS, POSITIONS, PositionKind

Norm = Literal["pre", "post", "none"]
"""Where a sub-layer's normalisation stands: in front of it, behind its residual sum, or nowhere."""

EmbeddingInit = Literal["scaled", "unit", "unit_scaled", "uniform", "unit_uniform"]
"""How embeddings begin, and whether they are multiplied by √d_model where they are used.

As N(0, 1 / width) and multiplied, as N(0, 1), as N(0, 1) and multiplied, as U(-0.05, 0.05), or within ± 1.7.
"""

Init = Literal["glorot", "he", "lecun", "uniform"]
"""How linear maps begin: Glorot uniform, N(0, 2 / inputs), N(0, 1 / inputs) or uniform within 1 / √inputs."""

BiasInit = Literal["zero", "glorot", "uniform"]
"""How biases begin: as 0, those of convolutions and of the output layer Glorot uniform, or those of all maps
and convolutions uniform within 1 / √inputs, as torch's do.
"""

ResidualInit = Literal["plain", "depth"]
"""How the last map of each sub-layer begins: by its own rule, or that over the root of how many there are."""

OutputActivation = Literal["none", "relu", "gelu", "gelu_tanh", "tanh", "leaky_relu"]
"""What a model of numbers does to each of its outputs."""

Rule = tuple[bool, str]
"""Whether something holds, and what is told where it does not."""

MAX_DROPOUT = 0.9999
"""The highest probability of dropping a number: what is kept is divided by the rest."""

CLUSTER_WIDTH_DIVISOR = 4
"""Each cluster of symbols has embeddings narrower than those of the cluster before it by this factor."""


class ModelConfigError(ActivememError):
    """Settings with which no model can be built."""

    @classmethod
    def of_faults(cls, faults: list[str]) -> ModelConfigError:
        """Return the error with these faults, a line each."""
        return cls("\n".join(["the model cannot be built", *(f"  {fault}" for fault in faults)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The symbols from `start` up to before `end`, and how wide their embeddings are.

    Those that are `projected` pass a map to the width of the model, and in the softmax back.
    """

    start: int
    end: int
    width: int
    projected: bool

    @property
    def size(self) -> int:
        """The number of symbols."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """A model but for its body.

    Inputs are symbols of `vocab`, or `columns` real numbers at each position. Outputs are a distribution
    over `vocab`, or over `classes` where there are any, or as many real numbers as `targets` says.
    `cutoffs` begin clusters of rarer symbols, in the input as in the softmax; the first is as wide as the
    model, and mapped all the same with `project_first_cluster`. Where it is `tied`, the softmax has the
    embedding's weights, and biases only with `tied_bias`; where it is not, it has none without
    `output_bias`. Maps of feed-forward blocks, the queries, keys and values of `sa`, and its outputs
    begin as N(0, s²) where a standard deviation s is given; with `residual_init` depth the last map of
    each sub-layer begins smaller by the root of how many there are. Logits stay within `logit_cap`, if
    there is one. Of a model that reads one sequence and writes another, `source_vocab` has the symbols of
    the first, if they are not as many as `vocab`. With `zero_past` the blocks of a stream begin behind
    zero vectors. `mup` is the width at which maximal updates change nothing. Learned or randomised
    positions are `max_positions`. Behind a `bottleneck` what is said of all positions is decoded from the
    last one alone.
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
        if faults := _type_faults({each.name: getattr(self, each.name) for each in fields(self)}):
            raise ModelConfigError.of_faults(faults)

    def faults(self) -> list[str]:
        """Return what is out of bounds or contradictory; an empty list for valid settings."""
        rules = (
            *self._sizes(),
            *self._ranges(),
            *self._words(),
            *self._outputs(),
            *self._clustering(),
            *self._maximal_updates(),
        )
        return [fault for holds, fault in rules if not holds]

    def check(self) -> None:
        """Raise ModelConfigError if anything is wrong, with all of it."""
        faults = self.faults()
        if faults:
            raise ModelConfigError.of_faults(faults)

    @property
    def symbols(self) -> int:
        """The size of the vocabulary; 0 where nothing is a symbol."""
        return self.vocab or 0

    @property
    def position_kind(self) -> PositionKind:
        """The positional encoding, for `max_positions` positions."""
        return POSITIONS[self.position].sized_to(self.max_positions)

    @property
    def embedding_scale(self) -> float:
        """The factor by which embeddings are multiplied where they are used."""
        return math.sqrt(self.d_model) if self.embedding in ("scaled", "unit_scaled") else 1.0

    @property
    def relative_width(self) -> float:
        """The width divided by the base width of maximal updates (μP); 1 without them."""
        return 1.0 if self.mup is None else self.d_model / self.mup

    @property
    def inner_dropout(self) -> float:
        """The probability of dropping a number inside a feed-forward block: `dropout` if none is given."""
        return self.dropout if self.feedforward_dropout is None else self.feedforward_dropout

    @property
    def source(self) -> ModelConfig:
        """The settings of a model that reads sources as its inputs."""
        return self if self.source_vocab is None else replace(self, vocab=self.source_vocab)

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """The symbols by frequency: all of them, or up to the first cut-off and so on."""
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
        """The numbers that the output layer gives of each position: of a clustered vocabulary the head's."""
        if self.targets is not None:
            return self.targets
        return self.clusters[0].size + len(self.cutoffs) if self.classes is None else self.classes

    @property
    def predicts_symbols(self) -> bool:
        """Whether the output is a distribution over the symbols of the vocabulary."""
        return self.targets is None and self.classes is None

    def _sizes(self) -> tuple[Rule, ...]:
        needed = self.columns is None or self.predicts_symbols
        given = (
            ("vocab", self.vocab),
            ("source_vocab", self.source_vocab),
            ("columns", self.columns),
            ("targets", self.targets),
            ("classes", self.classes),
            ("max_positions", self.max_positions),
        )
        return (
            (self.d_model >= 1, f"expected d_model of at least 1, got {self.d_model}"),
            (
                self.vocab is not None or not needed,
                "expected vocab, or columns and targets, got neither",
            ),
            (
                self.targets is None or self.classes is None,
                f"expected targets or classes, got {self.targets} and {self.classes}",
            ),
            *(
                (size is None or size >= 1, f"expected {name} of at least 1, got {size}")
                for name, size in given
            ),
        )

    def _ranges(self) -> tuple[Rule, ...]:
        rates = (
            ("dropout", self.dropout),
            ("attention_dropout", self.attention_dropout),
            ("embedding_dropout", self.embedding_dropout),
            ("input_dropout", self.input_dropout),
            ("feedforward_dropout", self.feedforward_dropout or 0.0),
        )
        positive = (
            ("norm_eps", self.norm_eps),
            ("feedforward_std", self.feedforward_std),
            ("attention_std", self.attention_std),
            ("attention_output_std", self.attention_output_std),
            ("logit_cap", self.logit_cap),
        )
        return (
            *(
                (0 <= rate <= MAX_DROPOUT, f"expected {name} from 0 to {MAX_DROPOUT}, got {rate}")
                for name, rate in rates
            ),
            *((each is None or each > 0, f"expected {name} above 0, got {each}") for name, each in positive),
        )

    def _words(self) -> tuple[Rule, ...]:
        return (
            _one_of("norm", self.norm, get_args(Norm)),
            *_registered("norm_kind", self.norm_kind, NORMS),
            *_registered("position", self.position, POSITIONS),
            _one_of("embedding", self.embedding, get_args(EmbeddingInit)),
            _one_of("init", self.init, get_args(Init)),
            _one_of("bias_init", self.bias_init, get_args(BiasInit)),
            _one_of("residual_init", self.residual_init, get_args(ResidualInit)),
            _one_of("output_act", self.output_act, get_args(OutputActivation)),
        )

    def _outputs(self) -> tuple[Rule, ...]:
        given = "symbols" if self.classes is None else "classes"
        return (
            (
                self.output_act == "none" or self.targets is not None,
                f"expected targets where there is an output_act, got {given} and {self.output_act}",
            ),
            (
                self.logit_cap is None or (self.targets is None and not self.cutoffs),
                "expected logits where there is a logit_cap, "
                f"got {'clusters' if self.cutoffs else 'numbers'}",
            ),
        )

    def _maximal_updates(self) -> tuple[Rule, ...]:
        """Return the rules of maximal updates.

        They need embeddings without a factor of the root of the width, and one vocabulary.
        """
        if self.mup is None:
            return ()
        scaled = self.embedding_scale != 1.0 and self.columns is None
        return (
            (self.mup >= 1, f"expected mup of at least 1, got {self.mup}"),
            (not scaled, f"expected an embedding such as unit where there is mup, got {self.embedding}"),
            (not self.cutoffs, "expected no cutoffs where there is mup, got some"),
            (self.source_vocab is None, "expected a model of one sequence where there is mup, got two"),
        )

    def _clustering(self) -> tuple[Rule, ...]:
        symbols = self.columns is None and self.predicts_symbols
        given = "numbers" if self.classes is None else "classes"
        ends = (0, *self.cutoffs, *(() if self.vocab is None else (self.vocab,)))
        rising = all(low < high for low, high in pairwise(ends))
        count, narrowest = len(self.cutoffs), CLUSTER_WIDTH_DIVISOR ** len(self.cutoffs)
        plural = f"{count} cut-off" + ("" if count == 1 else "s")
        cut = f"{', '.join(map(str, self.cutoffs))} of {self.vocab}"
        return (
            (
                symbols or not self.tied,
                f"expected symbols in and out where the weights are tied, got {given}",
            ),
            (
                symbols or not self.cutoffs,
                f"expected symbols in and out where there are cutoffs, got {given}",
            ),
            (
                self.output_bias or not self.tied,
                "expected weights that are not tied where there is no output_bias, got tied ones",
            ),
            (self.tied or not self.tied_bias, "expected tied weights where there is a tied_bias, got none"),
            (
                bool(self.cutoffs) or not self.project_first_cluster,
                "expected cutoffs where there is a project_first_cluster, got none",
            ),
            (rising or not self.cutoffs, f"expected cutoffs that rise and stay below vocab, got {cut}"),
            (
                self.d_model >= narrowest or not self.cutoffs,
                f"expected d_model of at least {narrowest} for {plural}, got {self.d_model}",
            ),
        )


class ModelKeywords(TypedDict, total=False):
    """The fields of a ModelConfig as keywords of a function."""

    d_model: int
    vocab: int | None
    source_vocab: int | None
    causal: bool
    norm: Norm
    residual: bool
    norm_kind: str
    position: str
    max_positions: int
    dropout: float
    attention_dropout: float
    embedding_dropout: float
    input_dropout: float
    feedforward_dropout: float | None
    norm_eps: float
    embedding: EmbeddingInit
    tied: bool
    tied_bias: bool
    cutoffs: tuple[int, ...]
    project_first_cluster: bool
    init: Init
    feedforward_std: float | None
    attention_std: float | None
    attention_output_std: float | None
    bias_init: BiasInit
    residual_init: ResidualInit
    columns: int | None
    targets: int | None
    classes: int | None
    output_act: OutputActivation
    output_bias: bool
    logit_cap: float | None
    zero_past: bool
    mup: int | None
    bottleneck: bool


def configure(config: ModelConfig | None, settings: ModelKeywords) -> ModelConfig:
    """Return the config with these settings, or a config of them alone.

    Raises ModelConfigError for unknown names and for values of another type.
    """
    names = [field.name for field in fields(ModelConfig)]
    faults = [_unknown(name, names) for name in settings if name not in names]
    faults += _type_faults({name: value for name, value in settings.items() if name in names})
    if (fault := argument_fault("config", config, (ModelConfig, type(None)))) is not None:
        faults.append(fault)
    elif config is None and "d_model" not in settings:
        faults.append("expected d_model, got none")
    if faults:
        raise ModelConfigError.of_faults(faults)
    return replace(config, **settings) if config else ModelConfig(**settings)  # pyright: ignore[reportCallIssue] -- d_model is there


def _type_faults(settings: Mapping[str, object]) -> list[str]:
    faults: list[str | None] = []
    for field in fields(ModelConfig):
        if field.name not in settings:
            continue
        value, (name, _, optional) = settings[field.name], str(field.type).partition(" | ")
        if optional and value is None:
            continue
        kinds, expected = _KINDS.get(name, (str, "a word"))
        faults.append(argument_fault(field.name, value, kinds, expected))
        if isinstance(value, tuple):
            faults += [argument_fault(field.name, each, Integral, expected) for each in value]
    return [fault for fault in faults if fault is not None]


_KINDS: dict[str, tuple[type, str]] = {
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "bool": (bool, "True or False"),
    "tuple[int, ...]": (tuple, "a tuple of whole numbers"),
}
"""The types of fields with their names in messages; all other fields are words."""


def _unknown(name: str, names: list[str]) -> str:
    return f"expected a setting of a model, got {name}{hint(name, names)}"


def _one_of(name: str, value: str, words: tuple[str, ...]) -> Rule:
    return value in words, f"expected {name} to be {_join_or(words)}, got '{value}'"


def _registered(name: str, value: str, registry: Registry[Any]) -> tuple[Rule, ...]:
    """Return a rule that a setting is a registered name.

    There is no rule if it is one, so that not all names need be loaded.
    """
    return () if value in registry else (_one_of(name, value, tuple(registry)),)


def _join_or(words: tuple[str, ...]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
