"""A run takes what a study lacks to this process or to Ray, in any order, and survives any crash.

`driver` hands what `rounds` find missing to this machine, by what is in `local`, or to `ray_cluster`, whose
workers are `ray_actor`, on nodes that `cluster_nodes` has looked at; those that do not see the store reach
it by `remote_store`. `ray_connection` starts Ray or connects to it, and `worker_code` checks that workers run
the driver's code. `head_watch` leaves a cluster whose head is gone, `gpu_share` says what trials have of
a GPU. Trials come from `cohort_sources`, or from a `search`, and run as `cohorts`, whose short trials
wait in `held_outcomes` to be stored together. What `other_drivers` of
the same store train is waited for. `preflight` refuses what cannot be right, `interrupts` stops in order, and
`memory_guard` ends workers that take too much.
"""
