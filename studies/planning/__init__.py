"""Plans and status: a study compared with a store.

`plan` combines `time_estimates`, `memory_estimates` and `data_facts`, and predicts lengths beyond reach.
`status` says what is done, `trials_to_run` what a run trains, `reused_trials` what it takes from other
trainings, and `trial_values` what was measured.
"""
