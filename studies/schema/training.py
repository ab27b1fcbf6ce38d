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
    OwnScheduleSettings,
    ScheduleSettings,
    changed_optimizer,
)
from ..catalog.tasks.algorithmic import Length
from ..catalog.train_parts import Callback, LossTerm
from ..text.strict_model import StrictModel, format_value, read_named


class CurriculumSettings(StrictModel):
    """`train.curriculum`: the first length, and the accuracy at which the length grows."""

    start: Length
    """the first length"""
    grow_at: float = Field(default=1.0, gt=0, le=1)
    """the accuracy on a fresh batch at which the length grows"""
    end: Length | None = None
    """the maximum length (default: none)"""

    @model_validator(mode="after")
    def _check_end(self) -> CurriculumSettings:
        if self.end is not None and self.end < self.start:
            raise ValueError(f"expected an end of at least the start, {self.start}, got {self.end}")
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
    """`[[train.groups]]`: weights selected by a name pattern, with their own training settings."""

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
            raise ValueError(f"frozen weights do not change, so {key} has no effect: remove it")
        return self


class OptimizerChangeSettings(StrictModel):
    """`[[train.changes]]`: optimizer keys that change after `after` epochs."""

    after: int = Field(ge=1)
    """the number of epochs before the change"""
    lr: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the peak learning rate from then on (default: unchanged)"""
    weight_decay: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """the strength of weight decay; groups with their own weight decay keep it"""
    betas: Betas | None = None
    """the decay rates of the moments"""
    eps: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the constant added to the denominator"""
    momentum: float | None = Field(default=None, ge=0, lt=1)
    """the momentum"""

    @property
    def values(self) -> dict[str, Any]:
        """The changed keys with their values."""
        return self.model_dump(exclude={"after"}, exclude_none=True)


CHANGEABLE = tuple(name for name in OptimizerChangeSettings.model_fields if name != "after")
"""The keys of `train.optimizer` that may change during a training, because no state's shape depends on them.
"""

GradientMeasure = Literal["gradient_norm"]
"""A metric of the gradients of an epoch."""


def _check_compile(value: object) -> object:
    """Raise ValueError with all valid values in one message; a union would report them one by one."""
    if isinstance(value, bool) or value == "reduce-overhead":
        return value
    raise ValueError(f'expected true, false or "reduce-overhead", got {format_value(value)}')


Compile = Annotated[bool | Literal["reduce-overhead"], BeforeValidator(_check_compile)]
"""The value of `compile`: whether torch compiles the body, or its compile mode."""

Precision = Literal["float32", "tf32", "bf16"]
"""The precision of matrix products: float32, or mantissas of 10 or 7 bits."""


class TrainSettings(StrictModel):
    """`[train]`: how the model is trained."""

    optimizer: Annotated[SerializeAsAny[OptimizerSettings], read_named(OptimizerSettings)]
    """the rule that updates the weights"""
    schedule: Annotated[SerializeAsAny[ScheduleSettings], read_named(ScheduleSettings)] = (
        OwnScheduleSettings()
    )
    """the learning rate over the steps"""
    groups: Annotated[tuple[ParameterGroupSettings, ...], Field(strict=False)] = ()
    """weights with their own training settings, by name patterns"""
    changes: Annotated[tuple[OptimizerChangeSettings, ...], Field(strict=False)] = ()
    """optimizer settings that change during the training"""
    clip_norm: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the maximum norm of all gradients together; larger ones are clipped"""
    clip_tensor_norm: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the maximum gradient norm of each single matrix, such as that of queries, keys or values; larger ones
    are clipped"""
    clip_step_norm: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the maximum gradient norm of each single matrix: above it the matrix's step is scaled down by the
    ratio, while the optimiser averages the unscaled gradient"""
    average: float | None = Field(default=None, gt=0, lt=1)
    """the decay of an exponential average of the weights, such as 0.999; the model is evaluated and stored
    with the average"""
    span_loss: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """the weight of the learnt attention spans in the loss"""
    batch_size: int = Field(ge=1)
    """the number of sequences in a training step; with batch_tokens the maximum number"""
    batch_tokens: int | None = Field(default=None, ge=1)
    """for pairs of sequences: the maximum number of tokens in a training step; pairs of similar length fill
    it, each counted as long as the longer side of the longest pair"""
    accumulate: int = Field(default=1, ge=1)
    """the number of micro-batches of a step, computed one after the other (gradient accumulation)"""
    epochs: int = Field(ge=1)
    """the number of epochs; the model is evaluated after each one"""
    steps_per_epoch: int = Field(ge=1)
    """the number of training steps in an epoch"""
    sampling: float = Field(default=0.0, ge=0, le=1)
    """for pairs of sequences: the share of target symbols that the model reads as its own guesses (scheduled
    sampling)"""
    scheduled_sampling: ScheduledSamplingSettings | None = None
    """how the share of `sampling` grows; with this table guesses are drawn one after the other from the
    model's probabilities, without it they are the most likely symbols"""
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    """for pairs of sequences: the probability that is spread over all target symbols"""
    precision: Precision = "float32"
    """the precision in which operations multiply numbers; weights stay in 32 bits"""
    compile: Compile = False
    """whether torch compiles the body; "reduce-overhead" also uses CUDA graphs, for short steps on a GPU"""
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
    """for algorithmic tasks: how the length grows"""
    lengths: (
        Annotated[
            tuple[Length, Length],
            Field(strict=False),
        ]
        | None
    ) = None
    """for algorithmic tasks, instead of a curriculum: the shortest and the longest length; each batch draws
    one length"""

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
        """Remove changes without effect, so that trials that differ only in them are one."""
        if any(first.after >= second.after for first, second in pairwise(changes)):
            got = ", ".join(str(each.after) for each in changes)
            raise ValueError(f"expected increasing epochs, got {got}")
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
        """Return the settings of the optimizer after this many epochs."""
        found = self.optimizer
        for each in self.changes:
            found = changed_optimizer(found, each.values) if each.after <= epochs else found
        return found

    def sequences(self, tokens: int) -> int:
        """Return the number of sequences in a step whose longest has this many tokens."""
        if self.batch_tokens is None:
            return self.batch_size
        return max(1, min(self.batch_size, self.batch_tokens // tokens))

    @field_validator("measure")
    @classmethod
    def _order_measures(cls, measure: tuple[str, ...]) -> tuple[str, ...]:
        """Remove duplicates and sort, so that the order does not change the trial."""
        return tuple(sorted(set(measure)))

    @field_validator("loss_terms", "callbacks")
    @classmethod
    def _check_names(cls, named: tuple[LossTerm, ...] | tuple[Callback, ...]) -> object:
        names = [each.name for each in named]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"expected each name once, got {', '.join(twice)} twice")
        return named

    @model_validator(mode="after")
    def _check_accumulate(self) -> TrainSettings:
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
