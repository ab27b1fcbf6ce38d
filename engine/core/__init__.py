"""Every part of the engine shares what is here, and none of it depends on a task.

`events` are what a run tells, `progress` follows a study by them, `resources` what a machine gives to a
trial, `gpus` which it has, of which `nvml` tells what is free, `cpu` how a process computes with it, `seeds`
the streams of random numbers, `device_stream` one that is drawn on its device, `placement` brings states to
one, `trainable` what trains, `models` builds a trial's model and `model_file` keeps it, `locks` lets one
process make what others wait for, `interruption` leaves a training amid its epoch, and `process_end` ends a
process with the one that it serves.
"""
