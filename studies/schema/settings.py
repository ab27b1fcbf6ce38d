"""The tables of a study file: the meaning, type, bounds and default of each key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
from ..text.toml_positions import KeyPath
from .training import TrainSettings

_DESIGNS_FOLDER = str(Path(__file__).parents[1] / "designs")

DESIGNS = ("grid", *sorted(module.name for module in iter_modules([_DESIGNS_FOLDER])))
"""The names of all designs: each but the grid is a module of `studies/designs/`."""

if TYPE_CHECKING:
    DesignKind = str
else:
    DesignKind = Literal[DESIGNS]

Order = Literal["seeds_last", "file", "shuffled"]
"""The order in which a run starts the trials of a grid."""

Level = str | int | float | bool
"""One value of a factor in the study file's notation."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,99}$")]
"""A name that is valid as part of a path."""

RECIPE_PATH: KeyPath = ("model", "recipe")
D_MODEL_PATH: KeyPath = ("model", "d_model")

BUDGET_KEYS = ("tokens", "flops")
"""Keys of [train] that stand in place of steps_per_epoch; their reader is `resolve/training_budget.py`."""

MAX_D_MODEL = 65536
"""The largest width of a model."""


Penalty = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""The weight of a decoding penalty."""


def _wrap_in_list(names: object) -> object:
    """Return a single name as a list of one; raise ValueError for anything else than names."""
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, list | tuple):
        raise ValueError(f"expected a text or a list of texts, got {format_value(names)}")
    return names


Names = Annotated[tuple[str, ...], Field(strict=False), BeforeValidator(_wrap_in_list)]
"""One name or several, as a text or a list of them."""

MatchedCost = Literal["parameters", "flops", "state", "memory"]
"""A cost of a model that `match` makes equal."""


_MOST_RECIPES = 65536
_recipes: dict[str, Recipe] = {}


def read_recipe(text: str) -> Recipe:
    """Return the recipe of a text, cached; raise RecipeError if it is invalid."""
    found = _recipes.get(text)
    if found is None:
        found = parse(text)
        keep_recipe(text, found)
    return found


def keep_recipe(text: str, recipe: Recipe) -> None:
    """Add an already parsed text to the cache."""
    if len(_recipes) >= _MOST_RECIPES:
        _recipes.clear()
    _recipes[text] = recipe


class StudySettings(StrictModel):
    """`[study]`: the study's name, its cells, and their maximum cost."""

    name: Name
    """the study's name in commands and in the store"""
    title: str
    """the question of the study, on one line"""
    paper: str | None = None
    """the paper whose published numbers are shown next to the study's own"""
    small: bool = False
    """whether its models or trainings are smaller than the paper's; verdicts on the paper's claims then read
    `confirmed in small`"""
    design: DesignKind = "grid"
    """how levels of factors are combined: grid (all combinations), one_at_a_time (around the baseline), zip
    (first with first, second with second, …), cumulative (one change after the other), path (the best change
    first), fractional (a fraction of a two-level grid), plackett_burman (the fewest two-level runs), or
    random and latin_hypercube (samples)"""
    target: dict[str, Any] = Field(default={})
    """for `cumulative` and `path`, which start at the baseline: final levels of factors with more than two
    levels"""
    metric: str | None = None
    """for `path`: the metric whose mean over the seeds decides which change each round keeps"""
    direction: Literal["max", "min"] | None = None
    """for `path`: the better direction of the metric (default: as usual for it)"""
    resolution: Literal["III", "IV", "V"] | None = None
    """for `fractional`: III separates main effects from each other, IV also from two-factor interactions, V
    also these interactions from each other"""
    cells: int | None = Field(default=None, ge=1, le=100_000)
    """for `random` and `latin_hypercube`: the number of cells drawn from the grid"""
    design_seed: int | None = Field(default=None, ge=0, lt=2**63)
    """the seed of this draw"""
    ablate: Literal["parts"] | None = None
    """adds a factor `recipe` with the model's recipe, first complete, then without each of its parts"""
    baseline: dict[str, Any] = Field(default={})
    """levels of factors and, for `match`, a number for the hole whose size is solved; for a search the values
    of its first point, to which others are compared"""
    baseline_seeds: int | None = Field(default=None, ge=2, le=1000)
    """for a search: the number of seeds of its baseline, whose spread estimates the noise (default: those of
    [factors])"""
    around: Names = ()
    """factors whose levels are all crossed with a design of the other factors"""
    order: Order = "seeds_last"
    """which trials of a grid start first: seeds_last (every cell with the first seed, then with the second,
    …), file (in the order of the levels in the file), or shuffled (random, but the same each time)"""
    labels: Names = ()
    """factors of a `zip` or of `[[cells]]` that only label cells and fill no hole"""
    match: Annotated[tuple[MatchedCost, ...], Field(strict=False), BeforeValidator(_wrap_in_list)] = ()
    """solve the size of each cell so that its model costs as much as the baseline's: `"parameters"`,
    `"flops"` (forward and backward, a token), `"state"` (the bytes that generation keeps), `"memory"` (the
    bytes of a training step), or a list of these"""
    max_seeds: int | None = Field(default=None, ge=2, le=1000)
    """the maximum number of seeds that `study run --until-decided` may add for undecided claims; claims are
    then tested at several looks, with a corrected level"""
    keep_weights: bool = False
    """whether the store keeps trained models and their outputs, for later measurements"""
    keep_checkpoints: bool = False
    """whether the store keeps the last state of each training, from which a longer training resumes"""
    tolerance: float = Field(default=0.005, ge=0, lt=1)
    """the maximum difference between a matched cost and the baseline's, as a fraction of the baseline's"""
    max_parameters: int | None = Field(default=None, ge=1)
    """the maximum number of parameters; larger cells and search points are not run"""
    max_step_flops: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the maximum FLOPs of a training step, forward and backward, on a batch of sequences of the task's
    length (40 tokens if it grows); larger cells and search points are not run"""


class ModelSettings(StrictModel):
    """`[model]`: the body and the layers around it; `recipe` is normalised to its canonical text."""

    recipe: str
    """the model's body, in the recipe language"""
    d_model: int = Field(ge=1, le=MAX_D_MODEL)
    """width of the model"""
    norm: Norm = "pre"
    """where a sub-layer is normalised: pre, its input; post, the sum with its input; or none"""
    residual: bool = True
    """whether each sub-layer's output is added to its input"""
    norm_kind: Annotated[str, KnownNames(lambda: NORMS), AfterValidator(NORMS.check)] = "layer_norm"
    """the kind of norm: layer_norm or rms_norm"""
    position: Annotated[str, KnownNames(lambda: POSITIONS), AfterValidator(POSITIONS.check)] = "timing"
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
    logit_cap: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """soft cap c of logits z: they become c tanh(z / c), as in Gemma 2 (default: no cap)"""
    zero_past: bool = False
    """for texts in streams: whether blocks see zero vectors before the beginning, instead of nothing"""

    @field_validator("max_positions")
    @classmethod
    def _omit_without_effect(cls, count: int, info: ValidationInfo) -> int:
        """Return the default if the value has no effect, so that trials that differ only in it are one."""
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

    `code` has the digests of the plug-in source used, by plug-in part: "task mqar" maps to "mqar.py
    1a2b3c4d5e6f7081". It is empty if no plug-in is used.
    """

    model: ModelSettings
    task: Annotated[SerializeAsAny[TaskSettings], BeforeValidator(read_task_settings)]
    train: TrainSettings
    seed: int = Field(default=0, ge=0, lt=2**63)
    code: Mapping[str, str] = Field(default_factory=dict[str, str])


class DecodeSettings(StrictModel):
    """`[decode]`: the searches that `probe run` tries with trained translation models.

    Not part of a trial's identity. All combinations are tried on the dev split.
    """

    beam: Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], Field(strict=False)] = ()
    """beam sizes to try (default: that of `[task]`)"""
    length_penalty: Annotated[tuple[Penalty, ...], Field(strict=False)] = ()
    """length penalties to try; without effect with a beam of 1 and on models that try lengths"""
    coverage_penalty: Annotated[tuple[Penalty, ...], Field(strict=False)] = ()
    """coverage penalties to try, which need attention weights"""
    sizes: Annotated[tuple[SizeChoice, ...], Field(strict=False)] = ()
    """output sizes to try, for models that need the output length in advance"""
    tokenizers: Annotated[
        tuple[Literal["13a", "intl", "char", "zh", "none"], ...], Field(strict=False, min_length=1)
    ] = ("13a",)
    """sacrebleu tokenisers for BLEU; the first one decides on the dev split"""
