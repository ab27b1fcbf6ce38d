"""Runs of studies: they schedule what a study lacks in this process or on Ray, and survive any crash.

`driver` runs a study, round after round. Trials come as cohorts from `cohort_sources` (a grid) or from
`search`, and a worker runs them by `cohorts`, which store short trials together. `preflight` finds faults
before anything trains.

Cohorts run in this process or on Ray; `short_grids` decides which grids need no Ray. `ray_connection` starts
Ray or connects to it and watches its head. `ray_cluster` schedules cohorts with Tune, and `ray_actor` is a
worker. `cluster_nodes` and `worker_code` check nodes and workers, and `gpu_share` decides each trial's share
of a GPU.

`stuck_process` stops a run when native code is stuck; `memory_guard` kills workers that take too much memory.
`notebook_progress` shows a run in a notebook.
"""
