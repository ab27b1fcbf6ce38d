"""The tables of a study file: what each key means, its type, its bounds and its default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SerializeAsAny, ValidationInfo, field_validator

from ...grammar import (
    BiasInit,
    EmbeddingInit,
    Expression,
    Init,
    Norm,
    OutputActivation,
    Recipe,
    ResidualInit,
    parse,
)
from ...grammar.norms import NORMS
from ...grammar.positions import MAX_POSITIONS, POSITIONS, SizedPosition
from ..catalog.tasks import SizeChoice, TaskSettings, read_task_settings
from ..text.strict_model import KnownNames, StrictModel, format_value
from .training import TrainSettings

DesignKind = Literal[
    "grid",
    "one_at_a_time",
    "zip",
    "cumulative",
    "path",
    "fractional",
    "plackett_burman",
    "random",
    "latin_hypercube",
]
"""The design that combines the factors of a study."""

Order = Literal["seeds_last", "file", "shuffled"]
"""The order in which a run starts the trials of a grid."""

Level = str | int | float | bool
"""One value of a factor in the study file's notation."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,99}$")]
"""A name that is valid in a path."""

MAX_D_MODEL = 65536
"""The largest width of a model."""


Penalty = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""The weight of a property of a hypothesis."""


def _wrap_in_list(names: object) -> object:
    """Return a single name as a list of one; raise ValueError for what is neither."""
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, list | tuple):
        raise ValueError(f"expected a text or a list of texts, got {format_value(names)}")
    return names


Names = Annotated[tuple[str, ...], Field(strict=False), BeforeValidator(_wrap_in_list)]
"""One name or several, as a text or a list of them."""


_MOST_RECIPES = 65536
_recipes: dict[str, Recipe] = {}


def read_recipe(text: str) -> Recipe:
    """Return the recipe of a text, each parsed once; raise RecipeError if it is invalid."""
    found = _recipes.get(text)
    if found is None:
        found = parse(text)
        keep_recipe(text, found)
    return found


def keep_recipe(text: str, recipe: Recipe) -> None:
    """Have a text, which somebody has parsed already, not parsed again."""
    if len(_recipes) >= _MOST_RECIPES:
        _recipes.clear()
    _recipes[text] = recipe


class StudySettings(StrictModel):
    """`[study]`: the study's name, which cells it has, and what they may cost."""

    name: Name
    """the study's name in commands and in the store"""
    title: str
    """the question of the study, in one line"""
    paper: str | None = None
    """the paper whose published numbers are shown beside the study's own"""
    small: bool = False
    """whether its models or trainings are smaller than the paper's: verdicts on what the paper says then read
    `confirmed in small`"""
    design: DesignKind = "grid"
    """how factors combine: all levels with all; one at a time around the baseline; in step; one after the
    other; so, with the best first; a fraction of two levels each; the fewest cells of these; or a sample"""
    target: dict[str, Any] = Field(default={})
    """of `cumulative` and `path`, which begin at the baseline: levels at their end, of factors that have more
    than two"""
    metric: str | None = None
    """of `path`: what decides which change each round keeps, by its mean over the seeds"""
    direction: Literal["max", "min"] | None = None
    """of `path`: which way is better of the metric, by default as is usual for it"""
    resolution: Literal["III", "IV", "V"] | None = None
    """of `fractional`: main effects are told from each other; also from interactions of two factors; and
    these from each other"""
    cells: int | None = Field(default=None, ge=1, le=100_000)
    """of `random` and `latin_hypercube`: how many cells of the grid are drawn"""
    design_seed: int | None = Field(default=None, ge=0, lt=2**63)
    """the seed that they are drawn with"""
    ablate: Literal["parts"] | None = None
    """makes a factor `recipe` of the model's recipe: as it is, then without each of its parts"""
    baseline: dict[str, Any] = Field(default={})
    """levels of factors and, for `match`, a number for the hole whose size is solved; of a search the values
    of the point that it begins with and is compared with"""
    baseline_seeds: int | None = Field(default=None, ge=2, le=1000)
    """of a search: how many seeds its baseline is trained with, whose spread tells the noise; by default
    those of [factors]"""
    around: Names = ()
    """factors that cross a design of the others, which then stands around each of their levels"""
    order: Order = "seeds_last"
    """which trials of a grid start first: seeds_last: one seed of every cell, then the second seed of every
    cell, and so on; file: as the levels stand in the file; shuffled: an order that is the same each time"""
    labels: Names = ()
    """factors of a `zip` or of `[[cells]]` that name cells and fill no hole"""
    match: Literal["parameters"] | None = None
    """the size of each cell is solved so that its model has as many parameters as the baseline's"""
    max_seeds: int | None = Field(default=None, ge=2, le=1000)
    """up to how many seeds `study run --until-decided` may add where claims are undecided; claims are then
    judged at several looks, which together keep their level"""
    keep_weights: bool = False
    """whether the store keeps the trained models and what they write, to be measured later"""
    keep_checkpoints: bool = False
    """whether the store keeps the last state of each training, from which one with more epochs goes on"""
    tolerance: float = Field(default=0.005, ge=0, lt=1)
    """how far a matched model's parameters may be from the baseline's, as a fraction of those"""
    max_parameters: int | None = Field(default=None, ge=1)
    """cells and search points whose models have more parameters are not run"""
    max_step_flops: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the same for the operations of a training step, forward and backward, on a batch of sequences of the
    task's length, or of 40 tokens where it grows"""


class ModelSettings(StrictModel):
    """`[model]`: the body and the layers around it; `recipe` becomes the canonical text."""

    recipe: str
    """the body, in the recipe language"""
    d_model: int = Field(ge=1, le=MAX_D_MODEL)
    """width of the model"""
    norm: Norm = "pre"
    """where a sub-layer is normalised: at its input, at the sum with its input, or nowhere"""
    residual: bool = True
    """whether each sub-layer's output is added to its input"""
    norm_kind: Annotated[str, KnownNames(lambda: NORMS), AfterValidator(NORMS.check)] = "layer_norm"
    """what a norm computes: layer_norm or rms_norm"""
    position: Annotated[str, KnownNames(lambda: POSITIONS), AfterValidator(POSITIONS.check)] = "timing"
    """how positions are told apart: timing, sinusoids added before every mixer; learned, vectors added to
    embeddings; randomised, as timing, but in each batch other ones of `max_positions`, in their order
    (Ruoss et al. 2023); randomised_pairs, by such numbers in mixers that compare positions, as sa(pos=rope)
    does; or none"""
    max_positions: int = Field(default=MAX_POSITIONS, ge=1, le=1 << 20)
    """how many positions are learned, or how many there are to choose from; without effect with others"""
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
    """added to the variance that a norm divides by"""
    embedding: EmbeddingInit = "scaled"
    """how embeddings are initialised: scaled: N(0, 1 / d_model), multiplied by √d_model where they are used;
    unit: N(0, 1); unit_scaled: N(0, 1), multiplied by √d_model; uniform: U(-0.05, 0.05);
    unit_uniform: U(-1.7, 1.7)"""
    tied: bool = False
    """whether the output layer shares the embedding's weights"""
    tied_bias: bool = False
    """whether a tied output layer has biases, one for each symbol and each cluster"""
    cutoffs: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False)] = ()
    """adaptive input and softmax: where clusters of rare symbols begin, each a quarter as wide as the last"""
    project_first_cluster: bool = False
    """whether the embeddings of the first cluster, which are as wide as the model, are mapped too"""
    init: Init = "glorot"
    """how maps are initialised: Glorot uniform, he: N(0, 2 / inputs), lecun: N(0, 1 / inputs), or uniform
    within 1 / √inputs"""
    feedforward_std: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the maps of `ff` are initialised from N(0, this²); by default as `init` says"""
    attention_std: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the same for the queries, keys and values of `sa` without relative positions"""
    attention_output_std: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the same for the map after its heads"""
    bias_init: BiasInit = "zero"
    """how biases are initialised: zero; glorot: uniform, those of convolutions and of the output layer;
    uniform: within 1 / √inputs, those of all maps and convolutions, as torch does"""
    residual_init: ResidualInit = "plain"
    """how the last map of each sub-layer is initialised: plain, by its rule; depth: that over the root of how
    many sub-layers there are, as in GPT-2"""
    output_act: OutputActivation = "none"
    """for tasks with numbers: the activation after the output layer"""
    output_bias: bool = True
    """whether an output layer with weights of its own has biases"""
    mup: int | None = Field(default=None, ge=1, le=MAX_D_MODEL)
    """maximal updates (Yang et al. 2022, Table 8): the d_model at which a model is as without them, but for
    attention, whose logits are divided by head_width / 8. At others the maps of the body learn at the rate of
    [train] times mup / d_model, the output is multiplied by that, and its weights begin as there"""
    logit_cap: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """logits z become c tanh(z / c), as in Gemma 2; by default they are as they are"""
    zero_past: bool = False
    """for texts in streams: whether blocks see zero vectors before the beginning, or nothing"""

    @field_validator("max_positions")
    @classmethod
    def _omit_without_effect(cls, count: int, info: ValidationInfo) -> int:
        """Return the default if the value has no effect, so that trials that differ in it alone are one."""
        kind = POSITIONS.get(info.data.get("position", ""))
        return count if isinstance(kind, SizedPosition) else MAX_POSITIONS

    @field_validator("recipe", mode="before")
    @classmethod
    def _expression_text(cls, recipe: object) -> object:
        return recipe.operand_text() if isinstance(recipe, Expression) else recipe

    @field_validator("recipe")
    @classmethod
    def _canonical_recipe(cls, text: str) -> str:
        recipe = read_recipe(text)
        gaps = [*recipe.holes, *(name for name, _ in recipe.dimensions)]
        if gaps:
            raise ValueError(f"expected a recipe without holes and dimensions, got {', '.join(gaps)}")
        return recipe.text


class TrialSettings(StrictModel):
    """Everything that determines the result of one trial.

    `code` has the digests of the plug-in source that it is computed with, by what is used of it: "task
    mqar" has "mqar.py 1a2b3c4d5e6f7081". It is empty if no plug-in is used.
    """

    model: ModelSettings
    task: Annotated[SerializeAsAny[TaskSettings], BeforeValidator(read_task_settings)]
    train: TrainSettings
    seed: int = Field(default=0, ge=0, lt=2**63)
    code: Mapping[str, str] = Field(default_factory=dict[str, str])


class DecodeSettings(StrictModel):
    """`[decode]`: what `probe run` tries with trained models that translate; no part of a trial's identity.

    All combinations are tried on the dev split.
    """

    beam: Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], Field(strict=False)] = ()
    """beam sizes to try; by default that of `[task]`"""
    length_penalty: Annotated[tuple[Penalty, ...], Field(strict=False)] = ()
    """the same for length penalties; without effect with a beam of 1 and on models that try lengths"""
    coverage_penalty: Annotated[tuple[Penalty, ...], Field(strict=False)] = ()
    """the same for coverage penalties, which need attention weights"""
    sizes: Annotated[tuple[SizeChoice, ...], Field(strict=False)] = ()
    """the same for the sizes of outputs, of models that are told them"""
    tokenizers: Annotated[
        tuple[Literal["13a", "intl", "char", "zh", "none"], ...], Field(strict=False, min_length=1)
    ] = ("13a",)
    """sacrebleu's tokenisations that BLEU is computed with; the first decides on the dev split"""
