"""Costs and reach of models, computed from a trial's settings and cached by recipe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from ...grammar import Analysis, ModelConfig, Reach, analyse
from ...grammar.analysis.analyse import count_parameters, find_reach
from ..catalog.metrics import MODEL_COSTS
from ..catalog.tasks import (
    AlgorithmicSettings,
    AlgorithmicTask,
    GeneratedTask,
    LongTermSettings,
    SyntheticTask,
    require_algorithmic,
)
from ..schema.settings import MatchedCost, ModelSettings, TrialSettings, read_recipe
from ..text.units import format_bytes, si_prefix
from .trial import Kind

REFERENCE_TOKENS = 40
"""The length at which the FLOPs of a training step are counted if it grows in training."""

LEAST_BF16_PRODUCTS = 5 * 2**19
"""The minimum number of positions in a step, times the squared width, for which bf16 is faster on a CPU."""


def gains_from_bf16(model: ModelSettings, positions: int) -> bool:
    """Return whether bf16 makes a step on this many positions faster, on a CPU that supports it.

    In smaller steps, casts take longer than faster products save. The rule depends only on sizes, so that
    trainings are the same on every CPU.
    """
    return positions * model.d_model**2 >= LEAST_BF16_PRODUCTS


def analysis(settings: TrialSettings, tokens: int) -> Analysis:
    """Return the analysis of a trial's model on a sequence of `tokens` tokens."""
    past = settings.task.interface.past
    return _analysis(settings.model.recipe, settings.config, tokens, past)


def parameter_count(settings: TrialSettings) -> int:
    """Return the number of parameters of a trial's model. Its other costs are not computed."""
    return _count_parameters(settings.model.recipe, settings.config)


# trials of a large grid have few models, and cells that differ in a rate share one


@lru_cache(maxsize=1024)
def _count_parameters(recipe: str, config: ModelConfig) -> int:
    return count_parameters(read_recipe(recipe), config)


@lru_cache(maxsize=1024)
def _find_reach(recipe: str, config: ModelConfig) -> Reach:
    return find_reach(read_recipe(recipe), config)


def sequence_tokens(settings: TrialSettings) -> int:
    """Return the number of tokens for which a trial's costs are computed.

    It is the length of the longest sequence. Return REFERENCE_TOKENS if the length grows.
    """
    if settings.train.lengths is not None:
        return require_algorithmic(settings.task.name).sequence_length(settings.train.lengths[1])
    return settings.task.interface.tokens or REFERENCE_TOKENS


def longest_tokens(settings: TrialSettings) -> int:
    """Return the greatest possible number of tokens of a training sequence.

    If the length grows without a limit, return at most REFERENCE_TOKENS, or the length of the first epoch.
    """
    task, curriculum = settings.task, settings.train.curriculum
    if task.longest_row is not None:
        return task.longest_row
    if curriculum is None or settings.train.lengths is not None or not isinstance(task, AlgorithmicSettings):
        return sequence_tokens(settings)
    spec = require_algorithmic(task.name)
    grown = spec.sequence_length(highest_length(settings))
    if curriculum.end is not None:
        return grown
    return min(grown, max(REFERENCE_TOKENS, spec.sequence_length(curriculum.start)))


def has_many_lengths(settings: TrialSettings) -> bool:
    """Return whether the training batches of a trial have different sequence lengths.

    Lengths grow with a curriculum, are drawn at random, or follow from the texts of a corpus.
    """
    task, train = settings.task, settings.train
    if isinstance(task, AlgorithmicSettings) and train.lengths is not None:
        return train.lengths[0] != train.lengths[1]
    if train.curriculum is not None:
        return train.curriculum.end != train.curriculum.start
    match task:
        case GeneratedTask():
            return not task.has_one_shape
        case LongTermSettings():
            return task.variable
        case _:
            return task.longest_row is not None


def step_flops(settings: TrialSettings) -> int:
    """Return the FLOPs of a training step on `sequence_tokens` tokens. Forward and backward passes count."""
    tokens = sequence_tokens(settings)
    return settings.train.batch_size * analysis(settings, tokens).training_flops


def flops_per_token(settings: TrialSettings) -> float:
    """Return the training FLOPs per token, forward and backward, on `sequence_tokens` tokens."""
    tokens = sequence_tokens(settings)
    return analysis(settings, tokens).training_flops / tokens


def state_bytes(settings: TrialSettings) -> int:
    """Return the bytes of a model's state after it has generated `sequence_tokens` tokens.

    Each number takes four bytes. A part of the state grows with every token, and a window has a fixed size.
    """
    found = _whole(settings)
    return 4 * (found.state * sequence_tokens(settings) + found.window)


def reach(settings: TrialSettings) -> Reach:
    """Return how many tokens to the left and right a position of the model can see."""
    return _find_reach(settings.model.recipe, settings.config)


def counted_cost(name: str, settings: TrialSettings) -> float | None:
    """Return a cost that is known before a trial is trained, such as `parameters`; None for other metrics.

    The FLOPs of a training are known if all its steps have one length and nothing ends it early.
    """
    train = settings.train
    if name in MODEL_COSTS:
        return model_cost(name, settings)
    if name != "flops" or has_many_lengths(settings) or isinstance(settings.task, LongTermSettings):
        return None
    may_end = train.stop or train.early_stopping or train.seconds or train.callbacks
    return None if may_end else max_training_flops(settings)


def model_cost(name: str, settings: TrialSettings) -> float:
    """Return one cost of a trial's model, such as `parameters`.

    The costs are in MODEL_COSTS. A cost that depends on the length is computed at `sequence_tokens`.
    """
    match name:
        case "parameters":
            return parameter_count(settings)
        case "step_flops":
            return step_flops(settings)
        case "activation_mib":
            train = settings.train
            batch = -(-train.batch_size // train.accumulate)
            return _whole(settings).memory(batch).activations / 2**20
        case "state_per_token":
            return _whole(settings).state
        case "state_kib":
            return state_bytes(settings) / 1024
        case "reach":
            seen = reach(settings)
            return min(seen.left + 1 + seen.right, sequence_tokens(settings))
        case _:
            raise ValueError(f"expected a cost of a model, got {name}")


def max_learnable_length(settings: TrialSettings) -> int | None:
    """Return the longest length that a trial can learn, given how far its model can see.

    At greater lengths only lucky guesses are correct. Return None if every length can be learned.
    """
    task = settings.task.spec
    return task.max_learnable_length(reach(settings)) if isinstance(task, AlgorithmicTask) else None


def longest_length(settings: TrialSettings) -> int:
    """Return the longest length of an algorithmic trial, in training and in tests.

    A length that grows is assumed to grow in every epoch.
    """
    train = settings.train
    assert isinstance(settings.task, AlgorithmicSettings)
    trained = train.lengths[1] if train.lengths is not None else highest_length(settings)
    return max(trained, *settings.task.test_lengths, 0)


def most_tokens(settings: TrialSettings) -> int | None:
    """Return the number of tokens of a trial's longest input.

    Inputs of training and tests count. None if unknown. The test rows of a text of lines or a table may be
    longer than its training rows.
    """
    task, train = settings.task, settings.train
    if isinstance(task, SyntheticTask):
        return task.most_tokens
    if task.longest_row is not None:
        return task.longest_row
    if isinstance(task, LongTermSettings):
        return task.length_range[1]
    if isinstance(task.spec, AlgorithmicTask) and (train.curriculum is None) != (train.lengths is None):
        return task.spec.sequence_length(longest_length(settings))
    return task.interface.tokens


def flops_of_test(settings: TrialSettings) -> float:
    """Return the forward FLOPs of a trial's test at all `test_lengths`."""
    task = settings.task
    if not isinstance(task, AlgorithmicSettings):
        return 0.0
    spec = require_algorithmic(task.name)
    # a backward pass costs twice a forward pass, so a third of a training step's FLOPs are forward
    each = (
        analysis(settings, spec.sequence_length(length)).training_flops / 3 for length in task.test_lengths
    )
    return task.test_examples * sum(each)


def max_trial_flops(settings: TrialSettings) -> float:
    """Return an upper bound of the FLOPs of a trial: those of its training and of its test."""
    return max_training_flops(settings) + flops_of_test(settings)


def max_training_flops(settings: TrialSettings) -> float:
    """Return an upper bound of the FLOPs of a trial's training.

    If a curriculum makes the length grow, it is assumed to grow in every epoch. The length grows until one
    step past its ceiling and stays there. A random length counts by its mean.
    """
    return _max_training_flops(Kind(settings))


@lru_cache(maxsize=4096)
def _max_training_flops(kind: Kind) -> float:
    settings = kind.settings
    train, task = settings.train, settings.task.spec
    if not isinstance(task, AlgorithmicTask):
        return float(train.epochs * train.steps_per_epoch * step_flops(settings))
    if train.lengths is not None:
        lengths = task.lengths(*train.lengths)
        if len(lengths) % 2 == 0:  # `_mean_epoch_flops` needs a middle; one more length keeps an upper bound
            lengths = range(lengths.start, lengths.stop + lengths.step, lengths.step)
        return train.epochs * _mean_epoch_flops(settings, task, lengths)
    assert train.curriculum is not None, "an algorithmic task without a curriculum"
    start, top = train.curriculum.start, highest_length(settings)
    bound = max_learnable_length(settings)
    if bound is not None:
        top = max(start, min(top, bound + task.length_step))
    growing = (top - start) // task.length_step + 1  # the number of epochs
    growing -= growing % 2 == 0  # `_mean_epoch_flops` needs a middle; the last epoch then counts at the top
    mean = _mean_epoch_flops(
        settings, task, range(start, start + growing * task.length_step, task.length_step)
    )
    return growing * mean + (train.epochs - growing) * _epoch_flops(settings, task, top)


def _mean_epoch_flops(settings: TrialSettings, task: AlgorithmicTask, lengths: range) -> float:
    """Return the training FLOPs of an epoch, averaged over these lengths.

    It is the mean of the parabola through the first, the middle and the last length. That is fast, and exact
    for most recipes if there is a length in the middle.
    """
    half = (len(lengths) - 1) // 2
    low, middle, high = (_epoch_flops(settings, task, lengths[place]) for place in (0, half, 2 * half))
    count = 2 * half + 1
    bend = (count + 1) / (3 * (count - 1)) if half else 0.0  # mean of x² at `count` points in [-1, 1]
    return middle + bend * ((low + high) / 2 - middle)


def highest_length(settings: TrialSettings) -> int:
    """Return the length that a trial reaches if its curriculum grows in every epoch."""
    train, step = settings.train, require_algorithmic(settings.task.name).length_step
    assert train.curriculum is not None, "an algorithmic task without a curriculum"
    top = train.curriculum.start + step * (train.epochs - 1)
    return top if train.curriculum.end is None else min(top, train.curriculum.end)


def reachable_length(settings: TrialSettings) -> int:
    """Return the greatest length that the curriculum of a trial can show, which is one of its steps."""
    train, step = settings.train, require_algorithmic(settings.task.name).length_step
    assert train.curriculum is not None, "an algorithmic task without a curriculum"
    start = train.curriculum.start
    return start + (highest_length(settings) - start) // step * step


def _epoch_flops(settings: TrialSettings, task: AlgorithmicTask, length: int) -> float:
    train = settings.train
    return (
        train.steps_per_epoch
        * train.batch_size
        * analysis(settings, task.sequence_length(length)).training_flops
    )


@lru_cache(maxsize=65536)
def _analysis(recipe: str, config: ModelConfig, tokens: int, past: int) -> Analysis:
    return analyse(read_recipe(recipe), config, length=tokens, past=past)


def _whole(settings: TrialSettings) -> Analysis:
    return analysis(settings, sequence_tokens(settings))


@dataclass(frozen=True, slots=True, kw_only=True)
class CostMatch:
    """One cost of a cell's model, and the same cost of the baseline's model.

    `amount` is the cell's cost, and `target` the baseline's.
    """

    name: MatchedCost
    amount: float
    target: float

    @property
    def residual(self) -> float:
        """The cost minus the baseline's cost."""
        return self.amount - self.target

    @property
    def relative_residual(self) -> float:
        """The residual as a fraction of the baseline's cost. Infinite if only the baseline's cost is 0."""
        if not self.residual:
            return 0.0
        return self.residual / self.target if self.target else math.copysign(math.inf, self.residual)

    @property
    def residual_text(self) -> str:
        """Return the residual as text: `−1,284` for a parameter count, `+0.31 %` for other costs."""
        if not self.residual:
            return "0"
        shown = f"{self.residual:+,.0f}" if self.name == "parameters" else self.percent
        return shown.replace("-", "−")

    @property
    def percent(self) -> str:
        """Return the relative residual as text: `+0.032 %`."""
        percent = 100 * self.relative_residual
        text = f"{percent:+,.0f} %" if abs(percent) >= 100 else f"{percent:+.3g} %"
        return text.replace("-", "−").replace("inf", "∞")

    def __str__(self) -> str:
        """Return the cost and its relative residual, if finite, as text: `1,603,940 (+0.032 %)`."""
        cost = cost_text(self.name, self.amount)
        return cost if math.isinf(self.relative_residual) else f"{cost} ({self.percent})"


def cost_text(name: MatchedCost, amount: float) -> str:
    """Return a cost with its unit: `1,603,940`, `12.3 MFLOPs a token`, `65.5 kB`."""
    if name == "parameters":
        return f"{amount:,.0f}"
    if name == "flops":
        unit, size = si_prefix(amount)
        return f"{amount / size:.4g} {unit}FLOPs a token"
    return format_bytes(amount)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeMatch:
    """The computed size of a cell, and how its costs compare with the baseline's.

    `size` is None if the cell has no size to compute.
    """

    size: int | None
    costs: tuple[CostMatch, ...]

    @property
    def largest(self) -> CostMatch:
        """The cost with the largest relative residual."""
        return max(self.costs, key=lambda cost: abs(cost.relative_residual))

    @property
    def residual_text(self) -> str:
        """Return the residuals as text: `−1,284` for one cost, `flops +0.3 %, state −2 %` for several."""
        if len(self.costs) == 1:
            return self.costs[0].residual_text
        return ", ".join(f"{cost.name} {cost.residual_text}" for cost in self.costs)

    @property
    def balance(self) -> float:
        """The sum of the smallest and the largest relative residual.

        At 0 one cost is as far below the baseline's as another is above. At this size, the larger deviation
        is as small as possible.
        """
        found = [cost.relative_residual for cost in self.costs]
        return min(found) + max(found)

    def __str__(self) -> str:
        if len(self.costs) == 1:
            return str(self.costs[0])
        return ", ".join(f"{cost.name} {cost}" for cost in self.costs)
