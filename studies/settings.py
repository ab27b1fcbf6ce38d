"""The tables of a study file: what each key means, its type, its bounds and its default."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ..grammar import Expression, Recipe, parse
from .tasks import require_task

Level = str | int | float | bool
"""One value of a factor, as the study file has it."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,99}$")]
"""A name that may stand in a path."""


@lru_cache(maxsize=65536)
def read_recipe(text: str) -> Recipe:
    """The recipe of a text, read once; RecipeError if it is none."""
    return parse(text)


class Section(BaseModel):
    """Any table of a study file: frozen, with neither unknown keys nor changed types."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class StudySettings(Section):
    """`[study]`: what the study is called, which cells it has, and what they may cost.

    `paper` is the one whose numbers stand beside its own. `design` combines the factors: each level with
    each, each factor by itself around the baseline, or the first levels together, then the second, and so on.
    `baseline` has levels of factors and, for `match`, a whole number for the one hole that every cell gets
    its own number for, so that its parameters are those of the baseline within a share of `tolerance`.
    `max_parameters` and `max_flops` bound a model, and the operations of a training step on sequences of 40
    tokens: cells and search points beyond are not run.
    """

    name: Name
    title: str
    paper: str | None = None
    design: Literal["grid", "one_at_a_time", "zip"] = "grid"
    baseline: dict[str, Any] = {}
    match: Literal["parameters"] | None = None
    tolerance: float = Field(default=0.005, ge=0, lt=1)
    max_parameters: int | None = Field(default=None, ge=1)
    max_flops: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class ModelSettings(Section):
    """`[model]`: the body and what stands around it; `recipe` becomes the canonical text."""

    recipe: str
    d_model: int = Field(ge=1, le=65536)
    norm: Literal["pre", "post"] = "pre"
    position: Literal["timing", "none"] = "timing"
    dropout: float = Field(default=0.1, ge=0, lt=1)

    @field_validator("recipe", mode="before")
    @classmethod
    def spelled(cls, recipe: object) -> object:
        """The text of an expression; anything else as it is."""
        return recipe.written() if isinstance(recipe, Expression) else recipe

    @field_validator("recipe")
    @classmethod
    def canonical(cls, text: str) -> str:
        """The recipe in its canonical text; ValueError if it is none, or one that leaves something open."""
        recipe = read_recipe(text)
        gaps = [*recipe.holes, *(name for name, _ in recipe.dimensions)]
        if gaps:
            raise ValueError(f"expected a recipe without holes and dimensions, got {', '.join(gaps)}")
        return recipe.text


class TaskSettings(Section):
    """`[task]`: what is learned."""

    name: str

    @field_validator("name")
    @classmethod
    def known(cls, name: str) -> str:
        """The name, if a task has it; else ValueError with the nearest one."""
        return require_task(name).name


class OptimizerSettings(Section):
    """`train.optimizer`: the rule that moves the weights; `betas` and `eps` belong to adam and adamw."""

    name: Literal["adam", "adamw", "sgd"]
    lr: float = Field(gt=0, allow_inf_nan=False)
    weight_decay: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    betas: Annotated[
        tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]], Field(strict=False)
    ] = (0.9, 0.999)
    eps: float = Field(default=1e-8, gt=0, allow_inf_nan=False)


class ScheduleSettings(Section):
    """`train.schedule`: the learning rate over the steps; `lr` is its highest value in all of them.

    It rises linearly over the first `warmup` steps. Then constant stays, linear falls in a line and cosine in
    half a wave to 0 at the last step, and inverse_sqrt falls as (warmup / step) ** 0.5 (Vaswani et al. 2017,
    equation 3, whose highest value is (d_model * warmup) ** -0.5).
    """

    name: Literal["constant", "linear", "inverse_sqrt", "cosine"] = "constant"
    warmup: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def warms_up(self) -> ScheduleSettings:
        """An inverse square root needs a step to fall from."""
        if self.name == "inverse_sqrt" and self.warmup < 1:
            raise ValueError("inverse_sqrt needs a warmup of at least 1 step")
        return self


class CurriculumSettings(Section):
    """`train.curriculum`: the first length, and the accuracy on a fresh batch at which the length grows."""

    start: int = Field(ge=1)
    grow_at: float = Field(default=1.0, gt=0, le=1)


class TrainSettings(Section):
    """`[train]`: how the weights are found; `clip_norm` bounds the norm of all gradients together."""

    optimizer: OptimizerSettings
    schedule: ScheduleSettings = ScheduleSettings()
    clip_norm: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    batch_size: int = Field(ge=1)
    epochs: int = Field(ge=1)
    steps_per_epoch: int = Field(ge=1)
    curriculum: CurriculumSettings


class Settings(Section):
    """Everything that determines the result of one trial."""

    model: ModelSettings
    task: TaskSettings
    train: TrainSettings
    seed: int = Field(default=0, ge=0, lt=2**63)


class SearchSettings(Section):
    """`[search]`: how points are chosen; `space` names dimensions that fill holes, in the recipe language."""

    sampler: Literal["tpe", "random", "cmaes", "gp", "nsga2", "grid"] = "tpe"
    trials: int = Field(ge=1)
    metric: str
    direction: Literal["max", "min"]
    scheduler: Literal["asha", "hyperband", "median", "none"] = "none"
    seed: int = Field(default=0, ge=0, lt=2**32)
    space: dict[str, str] = {}
