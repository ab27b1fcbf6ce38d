"""Plans and status: a study compared with a store.

`plan` combines `time_estimates`, `memory_estimates`, `reach_limits` and the `subset` of a grid that the
user selects; `shorter_trials` are those that a trial can resume from, `stale_trials` those of plug-ins with
other source. `status` says what is done, `fitting_trials` finds
trials of other studies for a search, `trials_to_run` those that a run trains, `trial_values` are measured
values, `divergence` marks lost trainings, and `probe_targets` which models can be probed.
"""
