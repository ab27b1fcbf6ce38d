"""A local run needs no Ray, and what one of its trials does to its process is that trial's outcome.

`in_process` trains in the calling process, in which `last_resort` ends native code that does not come back
when it is asked twice. `isolated` trains in a process of its own, whose side of it is `worker_process`.
"""
