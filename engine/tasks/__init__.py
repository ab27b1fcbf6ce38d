"""Generators of tasks: seeded draws of inputs and targets, the same for every device.

`algorithmic` has the algorithmic tasks and the sequences that models are scored on. `long_term` and
`memory_degradation` are problems of papers. `synthetic` has causal tasks that distinguish mixers. `generated`
checks what tasks draw, and `conformance` states what every task must hold to.
"""

from . import synthetic
from .algorithmic import Batch, Task, get_task, registered_tasks

__all__ = ["Batch", "Task", "get_task", "registered_tasks", "synthetic"]
