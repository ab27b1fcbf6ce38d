"""What every part of the engine shares; nothing here depends on a task.

`events` are what a run reports, and `progress` follows a study by them. `resources` are what a machine gives
to a trial; `gpus` finds its GPUs, `nvml` their free memory, and `cpu` prepares the process. `seeds` and
`device_stream` are streams of random numbers, `placement` moves states to a device, `models` builds a trial's
model, and `model_file` stores it. `locks` has one process make a file that others wait for, and
`interruption` leaves a training amid its epoch.
"""
