"""A command lists what a study can name, and shows one of it.

`block`, `norm`, `task`, `metric`, `optimizer`, `callback` and `sampler`.
"""

from . import block, callback, metric, norm, optimizer, sampler, task

__all__ = ["block", "callback", "metric", "norm", "optimizer", "sampler", "task"]
