"""Code that all parts of the engine share; nothing here depends on a task.

A run emits `events`, from which the same module tracks a study's progress. `resources` describes the cores,
GPUs and memory of a trial, and finds this machine's GPUs. `process` prepares the process, has its seeds and
generators, and stops a run cleanly, even in the middle of an epoch. `models` builds a trial's model in its
precision, and stores it.
"""
