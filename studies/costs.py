"""What the trials of a plan cost and can reach, counted from the text, each distinct recipe once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..grammar import Analysis, Norm, Reach, analyse, parse
from .settings import Settings, read_recipe
from .tasks import TaskSpec, require_task

TOKENS = 40
"""The length of the sequences for which the operations of a training step are stated and bounded."""

_SMALLEST = parse("ff(1)")


@dataclass(frozen=True, slots=True)
class Cost:
    """The model of a trial on one sequence; `flops` of a forward and a backward pass."""

    parameters: int
    flops: int


def cost(settings: Settings, tokens: int) -> Cost:
    """The cost of a trial's model on a sequence of so many tokens.

    Equal to that of `analyse` for the task's vocabulary.
    """
    model, vocab = settings.model, require_task(settings.task.name).vocab
    body = _body(model.recipe, model.d_model, model.norm, tokens)
    symbol = _symbol(model.d_model, tokens)
    return Cost(
        parameters=body.parameters + vocab * symbol.parameters,
        flops=body.training_flops + vocab * symbol.flops,
    )


def step_flops(settings: Settings) -> int:
    """The operations of a training step, forward and backward, on a batch of sequences of TOKENS tokens."""
    return settings.train.batch_size * cost(settings, TOKENS).flops


def reach(settings: Settings) -> Reach:
    """How far a trial's model sees."""
    return _body(settings.model.recipe, settings.model.d_model, settings.model.norm, 1).reach


def ceiling(settings: Settings) -> int | None:
    """The longest length that a trial can learn but for luck; None if its reach sets no bound."""
    return require_task(settings.task.name).ceiling(reach(settings))


def longest(settings: Settings) -> int:
    """The longest length of a trial that passes one in every epoch."""
    return settings.train.curriculum.start + require_task(settings.task.name).step * (
        settings.train.epochs - 1
    )


def most_flops(settings: Settings) -> float:
    """The training operations of a trial that grows in every epoch until it is one step past its ceiling.

    There it is stuck for the epochs that are left. The sum over the lengths before is that of the parabola
    through the first, the middle and the last: exact for most recipes, and quick.
    """
    train, task = settings.train, require_task(settings.task.name)
    start, bound, top = train.curriculum.start, ceiling(settings), longest(settings)
    if bound is not None:
        top = max(start, min(top, bound + task.step))
    growing = (top - start) // task.step + 1  # epochs
    growing -= growing % 2 == 0  # an odd number of them has one in the middle
    half = (growing - 1) // 2
    low, middle, high = (
        _epoch_flops(settings, task, start + task.step * epoch) for epoch in (0, half, 2 * half)
    )
    bend = (
        (growing + 1) / (3 * (growing - 1)) if half else 0.0
    )  # the mean of x^2 over so many points in [-1, 1]
    mean = middle + bend * ((low + high) / 2 - middle)
    return growing * mean + (train.epochs - growing) * _epoch_flops(settings, task, top)


def _epoch_flops(settings: Settings, task: TaskSpec, length: int) -> float:
    """The training operations of one epoch at a length."""
    train = settings.train
    return train.steps_per_epoch * train.batch_size * cost(settings, task.sequence_length(length)).flops


@lru_cache(maxsize=65536)
def _body(recipe: str, d_model: int, norm: Norm, tokens: int) -> Analysis:
    """A model without any symbols: costs are linear in the vocabulary, so that tasks can share them."""
    return analyse(read_recipe(recipe), d_model=d_model, length=tokens, vocab=0, norm=norm)


@lru_cache(maxsize=4096)
def _symbol(d_model: int, tokens: int) -> Cost:
    """What one more symbol of the vocabulary adds to any model."""
    without, within = (analyse(_SMALLEST, d_model=d_model, length=tokens, vocab=vocab) for vocab in (0, 1))
    return Cost(within.parameters - without.parameters, within.training_flops - without.training_flops)
