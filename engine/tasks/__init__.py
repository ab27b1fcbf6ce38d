"""What is learned: a task turns a seeded generator into whole batches of inputs and targets."""

from . import arithmetic, copying, logic, permutations
from .base import Batch, Task, get_task, registered_tasks

__all__ = ["Batch", "Task", "arithmetic", "copying", "get_task", "logic", "permutations", "registered_tasks"]
