"""The foundation that all parts of the engine share; nothing here depends on a task.

A run reports `events`, and `progress` follows a study by them. `resources` describes what a machine gives to
a trial. `gpus` finds its GPUs and their free memory, and `cpu` prepares the process. `random_streams` has
seeds and generators, `models` builds a trial's model, and `model_file` stores it. `interruption` stops a run
in order, also in the middle of an epoch.
"""
