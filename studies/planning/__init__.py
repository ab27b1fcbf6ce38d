"""Plans and status of studies.

They compare a study's trials with those in a store. `plan` combines `time_estimates`, `memory_estimates` and
`data_facts`, and predicts lengths beyond reach. `status` counts finished trials, `trials_to_run` lists what a
run trains, and `reused_trials` finds trials to reuse. `final_values` reads measured values, and the costs of
trainings to a target.
"""
