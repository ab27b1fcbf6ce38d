"""What a task is to the engine: a seeded draw of inputs and a rule for their targets; their registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ...studies.catalog.tasks import AlgorithmicTask, require_algorithmic

Draw = Callable[[int, int, int, torch.Generator], Tensor]
"""(number of symbols, batch size, nominal length, generator) to inputs (batch, tokens)."""


class Batch(NamedTuple):
    """Sequences and what must be answered at each of their positions; both (batch, tokens), int64."""

    inputs: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task: how its inputs are drawn, and the rule that gives the targets of any inputs."""

    spec: AlgorithmicTask
    draw: Draw
    solve: Callable[[Tensor], Tensor]

    def batch(
        self, batch_size: int, length: int, generator: torch.Generator, *, vocab: int | None = None
    ) -> Batch:
        """Draw a batch of a nominal length; the same state of the CPU generator gives the same batch.

        Of `vocab` symbols, or of as many as in the paper; there are two bits whatever it is. Raises TaskError
        for a length that the task cannot have.
        """
        self.spec.check_length(length)
        inputs = self.draw(vocab or self.spec.vocab, batch_size, length, generator)
        return Batch(inputs, self.solve(inputs))


_tasks: dict[str, Task] = {}


def register(name: str, draw: Draw, solve: Callable[[Tensor], Tensor]) -> Task:
    """Add the generator of a task that studies know; a second one for the same name raises ValueError."""
    if name in _tasks:
        raise ValueError(f"task '{name}' has a generator already")
    _tasks[name] = made = Task(spec=require_algorithmic(name), draw=draw, solve=solve)
    return made


def get_task(name: str) -> Task:
    """Return the task of that name; TaskError with the nearest name if there is none."""
    return _tasks[require_algorithmic(name).name]


def registered_tasks() -> tuple[str, ...]:
    """Return the names of all tasks that have a generator, sorted."""
    return tuple(sorted(_tasks))
