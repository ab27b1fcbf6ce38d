"""Compares a study with a store: what is done, what is left, what it costs, what it can reach.

`plan` combines `time_estimates`, `memory_estimates`, `reach_limits`, and the `subset` of a grid that the user
selects, and says which trials go on from `shorter_trials`, and which `stale_trials` are of plug-ins with
other source; `plan_html` shows it in a notebook.
`status` says what is done, `fitting_trials` what other studies have done of a search, `trials_to_run` what a
run trains, `trial_values` what was measured, `divergence` which trainings were lost, and `probe_targets`
which models can be probed.
"""
