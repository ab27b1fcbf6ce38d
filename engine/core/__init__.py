"""What every part of the engine shares; nothing here depends on a task.

`events` are what a run reports, and `progress` follows a study by them. `resources` are what a machine gives
to a trial; `gpus` finds its GPUs and their free memory, and `cpu` prepares the process. `random_streams` has
seeds and generators, `models` builds a trial's model, and `model_file` stores it. `interruption` stops a run
in order, and leaves a training amid its epoch.
"""
