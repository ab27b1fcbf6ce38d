"""What is learned: a task turns a seeded generator into whole batches of inputs and targets."""

from . import arithmetic, logic, memory, permuting
from .task import Batch, Task, generators, task

__all__ = ["Batch", "Task", "arithmetic", "generators", "logic", "memory", "permuting", "task"]
