"""Runs of studies, in this process or on Ray.

A run trains a study's missing trials, and survives any crash. `planning` says what a run would train here,
and at what cost. `driver` runs a study. A `trial_source`, a grid or a `search`, hands out trials, a `worker`
trains them, and its `outcome_buffer` stores short trials together. `preflight` finds faults before anything
trains. `step_times` measures steps, which decide what runs in this process, without Ray. `ray_connection`
starts Ray or connects to it and watches its head. `ray_cluster` lets Ray Tune schedule trials, and
`ray_actor` is a worker. `cluster_nodes` checks nodes, and decides each trial's share of a GPU.
"""
