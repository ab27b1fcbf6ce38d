"""A command lists what a study can name, and shows one of it.

`block`, `task`, `metric`, `optimizer`, `callback` and `sampler`.
"""

from . import block, callback, metric, optimizer, sampler, task

__all__ = ["block", "callback", "metric", "optimizer", "sampler", "task"]
