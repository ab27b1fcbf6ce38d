"""A command lists what a study can name, and shows one of it.

`block`, `task`, `metric`, `optimizer` and `sampler`.
"""

from . import block, metric, optimizer, sampler, task

__all__ = ["block", "metric", "optimizer", "sampler", "task"]
