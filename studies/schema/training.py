"""[train]: its keys, and the tables within it."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    SerializeAsAny,
    ValidationInfo,
    field_validator,
    model_validator,
)

from ..catalog.optimisers import (
    Betas,
    OptimizerSettings,
    changed_optimizer,
)
from ..catalog.schedules import OwnScheduleSettings, ScheduleSettings
from ..catalog.tasks.algorithmic import Length
from ..catalog.train_parts import Callback, LossTerm
from ..text.strict_model import StrictModel, format_value, read_named


class CurriculumSettings(StrictModel):
    """`train.curriculum`: the first length, and the accuracy on a fresh batch at which the length grows."""

    start: Length
    """the first length"""
    grow_at: float = Field(default=1.0, gt=0, le=1)
    """accuracy on a fresh batch at which the length grows"""
    end: Length | None = None
    """the length beyond which it does not grow; by default it has none"""

    @model_validator(mode="after")
    def _check_end(self) -> CurriculumSettings:
        if self.end is not None and self.end < self.start:
            raise ValueError(f"expected an end of at least the start, {self.start}, got {self.end}")
        return self


class ScheduledSamplingSettings(StrictModel):
    """`train.scheduled_sampling`: how often a model reads its own guesses, and how these are drawn.

    The share begins at `start` and doubles every `double_every` steps until it is `sampling`. Whether guesses
    are read at a position is drawn once for all targets of a batch. A guess is drawn from the model's
    probabilities given what it has read (the program of Kaiser and Bengio 2016).
    """

    start: float = Field(gt=0, le=1)
    """the share at the first step"""
    double_every: int = Field(ge=1)
    """the number of steps in which it doubles"""


class StopSettings(StrictModel):
    """`train.stop`: training ends early once the loss no longer changes from epoch to epoch."""

    within: float = Field(gt=0, allow_inf_nan=False)
    """training ends when no two of the last losses differ by this much"""
    epochs: int = Field(ge=1)
    """the last losses are those of this many epochs, and of the one before them"""


class EarlyStoppingSettings(StrictModel):
    """`train.early_stopping`: training ends early once a metric no longer gets better."""

    metric: str
    """a metric that there is after each epoch, such as dev_loss"""
    patience: int = Field(ge=1)
    """training ends after so many epochs in a row without a better value"""
    min_change: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """a value is better if it is by more than this"""


class ParameterGroupSettings(StrictModel):
    """`[[train.groups]]`: weights whose names fit a pattern, trained otherwise than the rest."""

    match: str = Field(min_length=1)
    """a pattern of the weights' names, `*` standing for any text: "body.*", "*.norm.*"; a weight is of the
    first group that fits"""
    lr_scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """what their learning rate is multiplied by, at every step"""
    weight_decay: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """how strongly they decay to 0; by default as the optimizer says"""
    freeze: bool = False
    """whether they stay as they were drawn"""

    @model_validator(mode="after")
    def _check_freeze(self) -> ParameterGroupSettings:
        if self.freeze and (self.lr_scale != 1.0 or self.weight_decay is not None):
            key = "weight_decay" if self.lr_scale == 1.0 else "lr_scale"
            raise ValueError(f"frozen weights do not move, so {key} has no effect: leave it out")
        return self


class OptimizerChangeSettings(StrictModel):
    """Settings of `[[train.changes]]`: keys of the optimizer that change after `after` epochs."""

    after: int = Field(ge=1)
    """the epochs that are over by then"""
    lr: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the highest learning rate from then on; what is left out stays as it was"""
    weight_decay: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """how strongly weights decay to 0; groups with a decay of their own keep it"""
    betas: Betas | None = None
    """the moments' decay rates"""
    eps: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """what is added to the denominator"""
    momentum: float | None = Field(default=None, ge=0, lt=1)
    """how much stays of the direction of the steps before"""

    @property
    def values(self) -> dict[str, Any]:
        """The changed keys with their values."""
        return self.model_dump(exclude={"after"}, exclude_none=True)


CHANGEABLE = tuple(name for name in OptimizerChangeSettings.model_fields if name != "after")
"""The keys of `train.optimizer` that may change while a model trains: no state's shape depends on them."""

GradientMeasure = Literal["gradient_norm", "gradient_noise"]
"""A metric of the gradients of an epoch."""


def _check_compile(value: object) -> object:
    """Raise ValueError with all valid values in one message; a union would report them one by one."""
    if isinstance(value, bool) or value == "reduce-overhead":
        return value
    raise ValueError(f'expected true, false or "reduce-overhead", got {format_value(value)}')


Compile = Annotated[bool | Literal["reduce-overhead"], BeforeValidator(_check_compile)]
"""The value of `compile`: whether torch compiles the body, or the mode in which it does."""

Precision = Literal["float32", "tf32", "bf16"]
"""The precision of products: 32 bits, or mantissas of 10 or 7 bits."""


class TrainSettings(StrictModel):
    """`[train]`: how the model is trained."""

    optimizer: Annotated[SerializeAsAny[OptimizerSettings], read_named(OptimizerSettings)]
    """the rule that moves the weights"""
    schedule: Annotated[SerializeAsAny[ScheduleSettings], read_named(ScheduleSettings)] = (
        OwnScheduleSettings()
    )
    """the learning rate over the steps"""
    groups: Annotated[tuple[ParameterGroupSettings, ...], Field(strict=False)] = ()
    """weights that are trained otherwise than the rest, by patterns of their names"""
    changes: Annotated[tuple[OptimizerChangeSettings, ...], Field(strict=False)] = ()
    """what of the optimizer changes while the model trains"""
    clip_norm: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the largest norm that all gradients together may have"""
    clip_tensor_norm: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the largest norm that the gradient of any single map may have, as those of queries, keys and values"""
    clip_step_norm: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the largest norm that the gradient of any single map may have: above it the map's step is scaled by
    the ratio of the two, while the optimiser averages the gradient itself"""
    average: float | None = Field(default=None, gt=0, lt=1)
    """how much of a moving average of the weights stays at each step, such as 0.999; the model is evaluated
    and kept with the average"""
    span_loss: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """weight of the learnt attention spans in the loss"""
    batch_size: int = Field(ge=1)
    """sequences in a training step; with batch_tokens at most so many"""
    batch_tokens: int | None = Field(default=None, ge=1)
    """for pairs of sequences: as many of like lengths are a training step as fit into so many tokens, each
    counted as long as the longer side of the longest"""
    accumulate: int = Field(default=1, ge=1)
    """parts into which the sequences of a step are split, computed one after the other"""
    epochs: int = Field(ge=1)
    """number of epochs; the model is evaluated after each"""
    steps_per_epoch: int = Field(ge=1)
    """training steps in an epoch"""
    sampling: float = Field(default=0.0, ge=0, le=1)
    """for pairs of sequences: the share of the target's symbols that the model reads its own guesses for"""
    scheduled_sampling: ScheduledSamplingSettings | None = None
    """how that share grows; guesses are then drawn one after the other, otherwise they are the likeliest"""
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    """for pairs of sequences: the probability that is spread over all symbols of the target's vocabulary"""
    precision: Precision = "float32"
    """how exactly products are computed, in all operations alike; weights stay in 32 bits"""
    compile: Compile = False
    """whether torch compiles the body; on a GPU also in its mode with CUDA graphs, for short steps"""
    stop: StopSettings | None = None
    """when training ends before the last epoch, since its loss is at rest"""
    early_stopping: EarlyStoppingSettings | None = None
    """when training ends before the last epoch, since a metric gets no better"""
    keep: Literal["last", "best"] = "last"
    """the epoch whose model is tested and kept: the last one, or the one with the best value of
    early_stopping's metric, or of dev_loss without early_stopping"""
    measure: Annotated[tuple[GradientMeasure, ...], Field(strict=False)] = ()
    """what is measured of the gradients in each epoch: gradient_norm, the mean of their norms before they are
    clipped; gradient_noise, the simple noise scale in sequences, from the parts of each step"""
    loss_terms: Annotated[
        tuple[Annotated[SerializeAsAny[LossTerm], read_named(LossTerm)], ...], Field(strict=False)
    ] = ()
    """what plug-ins add to the loss of each step"""
    callbacks: Annotated[
        tuple[Annotated[SerializeAsAny[Callback], read_named(Callback)], ...], Field(strict=False)
    ] = ()
    """what plug-ins do before the first epoch, after each and after the last"""
    curriculum: CurriculumSettings | None = None
    """for the algorithmic tasks: how the length grows, from the first on"""
    lengths: (
        Annotated[
            tuple[Length, Length],
            Field(strict=False),
        ]
        | None
    ) = None
    """for the algorithmic tasks, in place of a curriculum: the shortest and the longest length, of which each
    batch has one; the same twice for a single one"""

    @model_validator(mode="after")
    def _check_sampling(self) -> TrainSettings:
        if (schedule := self.scheduled_sampling) is not None and schedule.start > self.sampling:
            raise ValueError(
                f"scheduled_sampling grows from {schedule.start:g} to sampling, got {self.sampling:g}"
            )
        return self

    @model_validator(mode="after")
    def _check_lengths(self) -> TrainSettings:
        if self.lengths is not None and self.lengths[0] > self.lengths[1]:
            raise ValueError(f"expected lengths from the shortest to the longest, got {list(self.lengths)}")
        return self

    @field_validator("changes")
    @classmethod
    def _omit_without_change(
        cls, changes: tuple[OptimizerChangeSettings, ...], info: ValidationInfo
    ) -> tuple[OptimizerChangeSettings, ...]:
        """Those that change something, of that alone, so that trials that differ in nothing else are one."""
        if any(first.after >= second.after for first, second in pairwise(changes)):
            got = ", ".join(str(each.after) for each in changes)
            raise ValueError(f"expected each after more epochs than the one before, got {got}")
        now, found = info.data.get("optimizer"), list[OptimizerChangeSettings]()
        if not isinstance(now, OptimizerSettings):
            return changes
        for each in changes:
            before, now = now, changed_optimizer(now, each.values)
            new = {key: value for key, value in each.values.items() if getattr(before, key) != value}
            found += [OptimizerChangeSettings(after=each.after, **new)] if new else []
        return tuple(found)

    @model_validator(mode="after")
    def _check_changes(self) -> TrainSettings:
        if self.changes and (last := self.changes[-1].after) >= self.epochs:
            raise ValueError(f"changes: expected them after fewer epochs than all {self.epochs}, got {last}")
        return self

    @property
    def best_metric(self) -> str | None:
        """Return the metric whose best epoch is kept; None if the last epoch is."""
        if self.keep == "last":
            return None
        return self.early_stopping.metric if self.early_stopping else "dev_loss"

    def optimizer_after(self, epochs: int) -> OptimizerSettings:
        """Return the settings of the optimizer after that many epochs."""
        found = self.optimizer
        for each in self.changes:
            found = changed_optimizer(found, each.values) if each.after <= epochs else found
        return found

    def sequences(self, tokens: int) -> int:
        """Return the sequences of a step whose longest has this many tokens."""
        if self.batch_tokens is None:
            return self.batch_size
        return max(1, min(self.batch_size, self.batch_tokens // tokens))

    @field_validator("measure")
    @classmethod
    def _order_measures(cls, measure: tuple[str, ...]) -> tuple[str, ...]:
        """Each once, in one order, so that both orders are one trial."""
        return tuple(sorted(set(measure)))

    @field_validator("loss_terms", "callbacks")
    @classmethod
    def _check_names(cls, named: tuple[LossTerm, ...] | tuple[Callback, ...]) -> object:
        names = [each.name for each in named]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"expected each name once, got {', '.join(twice)} twice")
        return named

    @model_validator(mode="after")
    def _check_noise(self) -> TrainSettings:
        if "gradient_noise" in self.measure and self.accumulate == 1:
            raise ValueError(
                "gradient_noise needs the gradients of parts: expected accumulate of at least 2, got 1"
            )
        if "gradient_noise" in self.measure and self.batch_tokens is not None:
            raise ValueError("gradient_noise counts the sequences of a step, which batch_tokens lets vary")
        return self

    @model_validator(mode="after")
    def _check_accumulate(self) -> TrainSettings:
        if self.batch_size < self.accumulate:
            raise ValueError(
                f"expected batch_size of at least accumulate = {self.accumulate}, got {self.batch_size}"
            )
        if self.needs_equal_parts and self.batch_size % self.accumulate:
            what = "loss_terms" if self.loss_terms else "gradient_noise"
            raise ValueError(
                f"a batch of {self.batch_size} cannot be split into {self.accumulate} equal parts for {what}"
            )
        return self

    @property
    def needs_equal_parts(self) -> bool:
        """True if all parts of a batch must have equally many sequences, because their means are compared."""
        return bool(self.loss_terms) or "gradient_noise" in self.measure
