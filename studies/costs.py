"""What the trials of a plan cost and can reach, counted from the text, each distinct recipe once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..grammar import Analysis, Norm, Reach, analyse, parse
from .settings import Settings, read_recipe
from .tasks import TaskSpec, require_task

_SMALLEST = parse("ff(1)")


@dataclass(frozen=True, slots=True)
class Cost:
    """The model of a trial on one sequence; `flops` of a forward and a backward pass."""

    parameters: int
    flops: int


def cost(settings: Settings, tokens: int) -> Cost:
    """The cost of a trial's model on a sequence of so many tokens."""
    model, vocab = settings.model, require_task(settings.task.name).vocab
    body = _body(model.recipe, model.d_model, model.norm, tokens)
    symbol = _symbol(model.d_model, tokens)
    return Cost(
        parameters=body.parameters + vocab * symbol.parameters,
        flops=body.training_flops + vocab * symbol.flops,
    )


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
    """The training operations of a trial that grows in every epoch until its ceiling, and is stuck there.

    The lengths between are integrated by Simpson's rule: near enough for a plan, and quick.
    """
    train, task = settings.train, require_task(settings.task.name)
    bound, last = ceiling(settings), longest(settings)
    top = last if bound is None else min(last, max(bound, train.curriculum.start) + task.step)
    growing = (top - train.curriculum.start) // task.step + 1  # epochs
    middle = train.curriculum.start + (growing - 1) // 2 * task.step
    low, half, high = (
        _epoch_flops(settings, task, length) for length in (train.curriculum.start, middle, top)
    )
    return growing * (low + 4 * half + high) / 6 + (train.epochs - growing) * high


def _epoch_flops(settings: Settings, task: TaskSpec, length: int) -> float:
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
