"""[study], [model], [train] and [decode]: the tables of a trial's settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SerializeAsAny, field_validator, model_validator

from ...grammar import BuildSettings, Expression, ModelConfig, Recipe, parse
from ...plugins import Registry
from ..catalog.optimisers import OptimizerSettings, OwnScheduleSettings, ScheduleSettings
from ..catalog.tasks import READ_TASK, SizeChoice, TaskSettings
from ..catalog.tasks.algorithmic import Length
from ..catalog.train_parts import Callback, LossTerm
from ..text.strict_model import PartReader, PartSettings, StrictModel, format_value, read_named
from ..text.toml_positions import KeyPath
from .limits import Limit, check_limits, read_limit

if TYPE_CHECKING:
    from .design import Design, Expansion


class CurriculumSettings(StrictModel):
    """`train.curriculum`: sequences get longer during training once the model is accurate enough."""

    start: Length
    """the first length"""
    grow_at: float = Field(default=1.0, gt=0, le=1)
    """the accuracy on a fresh batch at which the length grows"""
    end: Length | None = None
    """the maximum length (default: none)"""

    @model_validator(mode="after")
    def _check_end(self) -> CurriculumSettings:
        if self.end is not None and self.end < self.start:
            raise ValueError(f"expected end of at least start = {self.start}, got {self.end}")
        return self


class ScheduledSamplingSettings(StrictModel):
    """`train.scheduled_sampling`: how often a model reads its own guesses instead of targets.

    The share begins at `start` and doubles every `double_every` steps until it is `sampling`. The positions
    of guesses are drawn once for all targets of a batch. A guess is drawn from the model's probabilities
    given what it has read (the program of Kaiser and Bengio 2016).
    """

    start: float = Field(gt=0, le=1)
    """the share at the first step"""
    double_every: int = Field(ge=1)
    """the number of steps in which the share doubles"""


class StopSettings(StrictModel):
    """`train.stop`: training ends early when the training loss stops changing."""

    within: float = Field(gt=0, allow_inf_nan=False)
    """training ends when the last losses all differ by less than this"""
    epochs: int = Field(ge=1)
    """the number of epochs over which the loss must not change; the loss before them counts, too"""


class EarlyStoppingSettings(StrictModel):
    """`train.early_stopping`: training ends early when a metric stops improving."""

    metric: str
    """a metric that is reported after each epoch, such as dev_loss"""
    patience: int = Field(ge=1)
    """the number of consecutive epochs without improvement after which training ends"""
    min_change: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """the minimum change that counts as an improvement"""


class ParameterGroupSettings(StrictModel):
    """`[[train.groups]]`: own training settings for some of the weights.

    A name pattern selects the weights.
    """

    match: str = Field(min_length=1)
    """a pattern of weight names, in which `*` matches any text: "body.*", "*.norm.*"; a weight belongs to the
    first group that matches"""
    lr_scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """the factor of their learning rate, at every step"""
    weight_decay: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """the strength of their weight decay (default: that of the optimizer)"""
    freeze: bool = False
    """whether they keep their initial values"""

    @model_validator(mode="after")
    def _check_freeze(self) -> ParameterGroupSettings:
        if self.freeze and (self.lr_scale != 1.0 or self.weight_decay is not None):
            key = "weight_decay" if self.lr_scale == 1.0 else "lr_scale"
            raise ValueError(f"frozen weights do not change, so {key} has no effect: remove {key}")
        return self


class StartSettings(StrictModel):
    """`[train] start`: a trained model whose weights are the initial ones."""

    model: str = Field(default="", exclude=True)
    """a trained model: `STUDY:TRIAL`, with the id of a trial or its beginning, the file of a model, or a
    folder that `model export` wrote"""
    store: str = Field(default="results", exclude=True)
    """for `STUDY:TRIAL`: the store of the study, as for `--results`"""
    take: Literal["all"] | Annotated[tuple[str, ...], Field(strict=False, min_length=1)] = "all"
    """the parts that are taken, by the beginnings of weight names or by patterns: `["embedding", "body.*"]`;
    all others are new"""
    sha256: str = ""
    """the SHA-256 of the model's file, which is part of a trial's id; it is read from the file, and a given
    one must fit"""

    @field_validator("take")
    @classmethod
    def _order_parts(cls, take: str | tuple[str, ...]) -> str | tuple[str, ...]:
        """Sort the parts and drop duplicates. Equal trials then have the same id."""
        return take if isinstance(take, str) else tuple(sorted(set(take)))

    @field_validator("sha256")
    @classmethod
    def _check_is_read(cls, sha256: str) -> str:
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise ValueError(f"expected the SHA-256 of a model's file, got {sha256!r}")
        return sha256

    @model_validator(mode="after")
    def _check_keys(self) -> StartSettings:
        if not self.sha256:
            raise ValueError(
                "no model was read: name it in [train] start, or in a level that is a table and fills it: "
                '{ label = "pretrained", model = "STUDY:TRIAL" }'
            )
        return self


def _read_start(start: object) -> object:
    """Return None for "scratch", so that a factor can have levels with and without a trained model."""
    return None if start == "scratch" else start


GradientMeasure = Literal["gradient_norm"]
"""A metric of the gradients of an epoch."""


Precision = Literal["float32", "tf32", "bf16"]
"""The precision of matrix products: float32, or mantissas of 10 or 7 bits."""


class TrainSettings(StrictModel, table="train"):
    """`[train]`: how the model is trained."""

    @classmethod
    def keys_of_table(cls) -> Iterable[str]:
        """Return the keys of [train], with those of `resolve/training_budget.py`."""
        return *cls.model_fields, "tokens", "flops"

    optimizer: Annotated[SerializeAsAny[OptimizerSettings], read_named(OptimizerSettings)]
    """the rule that updates the weights"""
    schedule: Annotated[SerializeAsAny[ScheduleSettings], read_named(ScheduleSettings)] = (
        OwnScheduleSettings()
    )
    """the learning rate over the steps"""
    start: Annotated[StartSettings | None, BeforeValidator(_read_start)] = None
    """a trained model whose weights are the initial ones; without it, or as `"scratch"`, all are new"""
    groups: Annotated[tuple[ParameterGroupSettings, ...], Field(strict=False)] = ()
    """weights with their own training settings, by name patterns"""
    clip_norm: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the maximum norm of all gradients together; larger ones are clipped"""
    clip_tensor_norm: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the maximum gradient norm of each single matrix, such as that of queries, keys or values; larger ones
    are clipped"""
    clip_step_norm: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the maximum gradient norm of each single matrix: above it the matrix's step is scaled down by the
    ratio, while the optimiser averages the unscaled gradient"""
    average: float | None = Field(default=None, gt=0, lt=1)
    """the decay of an exponential average of the weights over the steps, such as 0.999; the model is
    evaluated and stored with the average"""
    span_loss: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """the weight of the learnt attention spans in the loss"""
    batch_size: int = Field(default=32, ge=1)
    """the number of sequences in a training step"""
    accumulate: int = Field(default=1, ge=1)
    """the number of micro-batches of a step, computed one after the other (gradient accumulation)"""
    epochs: int = Field(ge=1)
    """the number of epochs; the model is evaluated after each one"""
    steps_per_epoch: int = Field(default=100, ge=1)
    """the number of training steps in an epoch"""
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the time of all training steps, instead of steps_per_epoch: each epoch takes an equal share of it and
    ends with the step that passes it; results are compared only with those of the same device"""
    sampling: float = Field(default=0.0, ge=0, le=1)
    """for pairs of sequences: the share of target symbols that are replaced by the model's own guesses when
    it reads them (scheduled sampling)"""
    scheduled_sampling: ScheduledSamplingSettings | None = None
    """how the share of `sampling` grows; with this table guesses are drawn one after the other from the
    model's probabilities, without it they are the most likely symbols"""
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    """for pairs of sequences: the probability that is spread over all target symbols"""
    precision: Precision = "float32"
    """the precision in which operations multiply numbers; weights stay in 32 bits"""
    compile: bool = False
    """whether torch compiles the body; where that fails, it runs without compilation, with a warning"""
    stop: StopSettings | None = None
    """when training ends before the last epoch because its loss has stopped changing"""
    early_stopping: EarlyStoppingSettings | None = None
    """when training ends before the last epoch because a metric has stopped improving"""
    keep: Literal["last", "best"] = "last"
    """the epoch whose model is tested and stored: the last one, or the one with the best value of
    early_stopping's metric, or of dev_loss without early_stopping"""
    measure: Annotated[tuple[GradientMeasure, ...], Field(strict=False)] = ()
    """gradient metrics of each epoch: gradient_norm, the mean norm before clipping"""
    loss_terms: Annotated[
        tuple[Annotated[SerializeAsAny[LossTerm], read_named(LossTerm)], ...], Field(strict=False)
    ] = ()
    """loss terms of plug-ins, added to the loss of each step"""
    callbacks: Annotated[
        tuple[Annotated[SerializeAsAny[Callback], read_named(Callback)], ...], Field(strict=False)
    ] = ()
    """callbacks of plug-ins, called before the first epoch, after each epoch and after the last"""
    curriculum: CurriculumSettings | None = None
    """for algorithmic tasks: how the length grows (default, if `lengths` is not set: from 5)"""
    lengths: Annotated[tuple[Length, Length], Field(strict=False)] | None = None
    """for algorithmic tasks, instead of a curriculum: the shortest and the longest length; each batch draws
    one length"""

    @model_validator(mode="after")
    def _check_keys(self) -> TrainSettings:
        if (schedule := self.scheduled_sampling) is not None and schedule.start > self.sampling:
            raise ValueError(
                f"expected a scheduled_sampling.start of at most sampling ({self.sampling:g}), "
                f"got {schedule.start:g}"
            )
        if self.lengths is not None and self.lengths[0] > self.lengths[1]:
            raise ValueError(f"expected lengths = [shortest, longest], got {list(self.lengths)}")
        if self.batch_size < self.accumulate:
            raise ValueError(
                f"expected batch_size of at least accumulate = {self.accumulate}, got {self.batch_size}"
            )
        if self.loss_terms and self.batch_size % self.accumulate:
            raise ValueError(
                f"a batch of {self.batch_size} cannot be split into {self.accumulate} equal parts, which "
                "loss_terms need"
            )
        return self

    @property
    def best_metric(self) -> str | None:
        """Return the metric whose best epoch is kept; None if the last epoch is kept."""
        if self.keep == "last":
            return None
        return self.early_stopping.metric if self.early_stopping else "dev_loss"

    @field_validator("measure")
    @classmethod
    def _order_measures(cls, measure: tuple[str, ...]) -> tuple[str, ...]:
        """Sort the names in `measure` and drop duplicates. Equal trials then have the same id."""
        return tuple(sorted(set(measure)))

    @field_validator("loss_terms", "callbacks")
    @classmethod
    def _check_names(cls, named: tuple[LossTerm, ...] | tuple[Callback, ...]) -> object:
        check_each_once([each.name for each in named])
        return named


def _module_names(folder: str) -> tuple[str, ...]:
    return tuple(sorted(module.name for module in iter_modules([str(Path(__file__).parents[1] / folder)])))


def _own_design(name: str) -> type[Design]:
    return import_module(f"..designs.{name}", __package__).DESIGN


DESIGNS: Registry[Callable[[], type[Design]]] = Registry(
    "design", {name: partial(_own_design, name) for name in _module_names("designs")}
)
"""Every design by its name. Those of `studies/designs/` are modules, which are loaded when they are used."""

EXPANSIONS = _module_names("expansions")
"""The keys, and the scheduler, that turn on optional features; each is a module of `studies/expansions/`."""


def find_design(name: str) -> type[Design]:
    """Return the class of a design.

    Raise ValueError with the nearest name for an unknown one. Only its module is loaded, so that a study
    loads only its own design.
    """
    return DESIGNS[DESIGNS.check(name)]()


def find_expansion(name: str) -> type[Expansion]:
    """Return the class of an optional feature. Only its module is loaded."""
    return import_module(f"..expansions.{name}", __package__).EXPANSION


_DESIGN = PartReader(
    "design", PartSettings, DESIGNS, lambda name: find_design(name).settings_class, is_short=True
)


Order = Literal["seeds_last", "file"]
"""The order in which a run starts the trials of a grid."""

Level = str | int | float | bool
"""One value of a factor in the study file's notation."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,99}$")]
"""A name that is valid as part of a path."""

RECIPE_PATH: KeyPath = ("model", "recipe")
D_MODEL_PATH: KeyPath = ("model", "d_model")

BUDGET_KEYS = ("tokens", "flops", "seconds")
"""Keys of [train] that stand in place of steps_per_epoch; their reader is `resolve/training_budget.py`."""


Penalty = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""The weight of a decoding penalty."""


def wrap_in_list(names: object) -> object:
    """Return a single text as a list of it. Raise ValueError for a value that is neither text nor list."""
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, list | tuple):
        raise ValueError(f"expected a text or a list of texts, got {format_value(names)}")
    return names


def check_each_once(names: Sequence[str]) -> None:
    """Raise ValueError if a name occurs twice."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"expected each name once, got {', '.join(twice)} twice")


Names = Annotated[tuple[str, ...], Field(strict=False), BeforeValidator(wrap_in_list)]
"""One name or several, as a text or a list of them."""

NonEmptyNames = Annotated[Names, Field(min_length=1)]
"""At least one name."""

MatchedCost = Literal["parameters", "flops", "state"]
"""A cost of a model that `match` makes equal."""


_MOST_RECIPES = 65536
_recipes: dict[str, Recipe] = {}


def read_recipe(text: str) -> Recipe:
    """Parse the text of a recipe, with a cache. Raise RecipeError for an invalid text."""
    found = _recipes.get(text)
    if found is None:
        found = parse(text)
        keep_recipe(text, found)
    return found


def keep_recipe(text: str, recipe: Recipe) -> None:
    """Add a parsed recipe to the cache of `read_recipe`."""
    # few studies have this many recipes, so the simplest bound on memory is enough
    if len(_recipes) >= _MOST_RECIPES:
        _recipes.clear()
    _recipes[text] = recipe


class StudySettings(StrictModel, table="study"):
    """`[study]`: the study's name, its cells, and their maximum cost."""

    @classmethod
    def keys_of_table(cls) -> Iterable[str]:
        """Return the keys of [study], with those of optional features."""
        models = filter(None, (find_expansion(name).header_keys for name in EXPANSIONS))
        return *cls.model_fields, *(key for model in models for key in model.model_fields)

    name: Name
    """the study's name in commands and in the store"""
    title: str
    """the question of the study, on one line"""
    paper: str | None = None
    """the paper whose published numbers are shown next to the study's own; any name with `published`"""
    published: Names = ()
    """a CSV file of published numbers, or a list of them, relative to this file; a `[[table]]` shows them"""
    plugins: Names = ()
    """plug-ins that the study needs: names of installed ones such as `fla`, or files relative to this file"""
    small: bool = False
    """whether its models or trainings are smaller than the paper's; verdicts on the paper's claims then read
    `confirmed in small`"""
    design: Annotated[SerializeAsAny[PartSettings], _DESIGN] = PartSettings(name="grid")
    """how levels of factors are combined: grid (all combinations), one_at_a_time (around the baseline), zip
    (first with first, second with second, …), or the design of a plug-in; a name, or a table with its keys"""
    baseline: dict[str, Any] = Field(default={})
    """levels of factors and, for `match`, a number for the hole whose size is solved; for a search the values
    of its first point, to which others are compared"""
    baseline_seeds: int | None = Field(default=None, ge=2, le=1000)
    """for a search: the number of seeds of its baseline, whose spread estimates the noise (default: those of
    [factors])"""
    around: Names = ()
    """factors whose levels are all crossed with a design of the other factors"""
    labels: Names = ()
    """factors of a `zip` or of `[[cells]]` that only label cells and fill no hole"""
    order: Order = "seeds_last"
    """which trials of a grid start first: seeds_last (every cell with the first seed, then with the second,
    …), or file (in the order of the levels in the file)"""
    max_seeds: int | None = Field(default=None, ge=2, le=1000)
    """the maximum number of seeds that `study run --until-decided` may add for undecided claims; claims are
    then tested at several looks, with a corrected level"""
    keep_weights: bool = False
    """whether the store keeps trained models and their outputs, for later measurements"""
    keep_checkpoints: bool = True
    """whether the store keeps the last state of each training, from which a longer training or a test at
    other lengths resumes; it is left out where neither could resume from it"""
    limits: Annotated[dict[str, str], AfterValidator(check_limits)] = Field(default={})
    """limits on models by cost, such as `"<= 1e6"`; larger cells and search points are not run; a search also
    learns to respect limits on metrics and on costs of trainings"""

    @property
    def bounds(self) -> tuple[Limit, ...]:
        """The limits of the key `limits`, in the order of the file."""
        return tuple(read_limit(name, text) for name, text in self.limits.items())


class RecipeSettings(StrictModel):
    """The key `recipe` of `[model]`; a base class, because it comes before the other keys."""

    recipe: str
    """the model's body, in the recipe language"""

    @field_validator("recipe", mode="before")
    @classmethod
    def _expression_text(cls, recipe: object) -> object:
        return recipe.operand_text() if isinstance(recipe, Expression) else recipe

    @field_validator("recipe")
    @classmethod
    def _canonical_recipe(cls, text: str) -> str:
        recipe = read_recipe(text)
        gaps = [*map("{{{}}}".format, recipe.holes), *(name for name, _ in recipe.dimensions)]
        if gaps:
            raise ValueError(f"expected a complete recipe, but no value is given for {', '.join(gaps)}")
        return recipe.text


class ModelSettings(BuildSettings, RecipeSettings, table="model"):
    """`[model]`: the model's body, which is a recipe, and the layers around it.

    The recipe is stored as its canonical text.
    """


@lru_cache(maxsize=1024)
def _build_settings(keys: tuple[tuple[str, Any], ...]) -> BuildSettings:
    return BuildSettings(**dict(keys))


class TrialSettings(StrictModel):
    """Everything that determines the result of one trial.

    `code` has the digests of the plug-in source used, by plug-in part: "task mqar" maps to "mqar.py
    1a2b3c4d5e6f7081". It is empty if no plug-in is used.
    """

    model: ModelSettings
    task: Annotated[SerializeAsAny[TaskSettings], READ_TASK]
    train: TrainSettings
    seed: int = Field(default=0, ge=0, lt=2**63)
    code: Mapping[str, str] = Field(default_factory=dict[str, str])

    @property
    def config(self) -> ModelConfig:
        """Return the config from which the engine builds the model; raise what `task.interface` raises."""
        keys = dict(vars(self.model))  # faster than iterating over the model: a plan needs many configs
        del keys["recipe"]
        settings = _build_settings(tuple(keys.items()))
        return ModelConfig(settings=settings, interface=self.task.interface.model)

    def with_train(self, **keys: object) -> TrialSettings:
        """Return a copy of these settings with other values of these keys of [train]."""
        return self.model_copy(update={"train": self.train.model_copy(update=keys)})

    def with_recipe(self, text: str) -> TrialSettings:
        """Return a copy of these settings with another complete recipe, given as its canonical text."""
        return self.model_copy(update={"model": self.model.model_copy(update={"recipe": text})})

    def with_seed(self, seed: int) -> TrialSettings:
        """Return a copy of these settings with another seed, which shares all other parts to save memory."""
        return self.model_copy(update={"seed": seed})


class DecodeSettings(StrictModel):
    """`[decode]`: values of decoding settings, such as beam sizes, that `probe run` tries.

    It tries all combinations with trained translation models on the dev split. These settings are not part of
    a trial's identity.
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
