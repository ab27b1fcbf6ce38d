"""Runs of studies: they schedule what a study lacks in this process or on Ray, and survive any crash.

`driver` runs a study in `rounds`. Trials come as cohorts from `cohort_sources` (a grid) or from `search`, and
a worker runs them by `cohorts`; `held_outcomes` stores short trials together. `preflight` and
`plugin_rehearsal` find faults before anything trains.

Cohorts run in this process (`local_run`; `short_grids` decides which grids do) or on Ray: `ray_connection`
starts Ray or connects to it, `ray_cluster` schedules cohorts by Tune, and `ray_actor` is a worker.
`cluster_nodes` and `worker_code` check nodes and workers, `gpu_share` decides each trial's share of a GPU,
and `head_watch` ends a run whose cluster has lost its head.

`interrupts` stop a run in order, `last_resort` when native code is stuck; `memory_guard` kills workers that
take too much memory. `notebook_progress` shows a run in a notebook.
"""
