"""Local runs, which train in the calling process without Ray.

`in_process` runs the cohorts; `last_resort` kills the process on a second Ctrl-C if native code is stuck.
"""
