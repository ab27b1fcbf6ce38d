"""A task turns a seeded generator into whole batches of inputs and targets, the same for every device.

`base` has what a task is and their registry. `copying`, `permutations`, `arithmetic` and `logic` are
algorithmic tasks; `long_term` and `memory_degradation` are papers' problems. `scored_sequences`
are those that their models are scored on. `synthetic` has causal tasks that tell mixers apart, `generated`
checks what tasks draw, and `conformance` has what every task must hold to.
"""

from . import arithmetic, copying, logic, permutations, synthetic
from .base import Batch, Task, get_task, registered_tasks

__all__ = [
    "Batch",
    "Task",
    "arithmetic",
    "copying",
    "get_task",
    "logic",
    "permutations",
    "registered_tasks",
    "synthetic",
]
