"""Runs of studies: scheduling what a study lacks in this process or on Ray, surviving any crash.

`driver` trains what `rounds` find missing, in this process (`local`) or on Ray (`ray_cluster`, whose workers
are `ray_actor`, on nodes that `cluster_nodes` has checked). `ray_connection` starts Ray or connects to it;
`worker_code` checks that workers run the driver's code; `short_grids` keeps short grids in this process;
`head_watch` ends a run whose cluster's head is gone; `gpu_share` decides each trial's share of a GPU. Trials
come from `cohort_sources` or from a `search` and run as `cohorts`; short ones wait in `held_outcomes` to be
stored together. `other_drivers` watches what others train. `preflight` refuses faulty studies, and
`plugin_rehearsal` runs plug-in code once before anything trains. `notebook_progress` shows a run in
a notebook. `interrupts` stop a run in order, and
`memory_guard` kills workers that take too much memory.
"""
