"""Comparison of studies with a store, and estimates for their plans.

A plan combines `time_estimates`, `memory_estimates` and `data_facts`. `status` counts finished trials,
`trials_to_run` lists what a run trains, and `reused_trials` finds trials to reuse. `final_values` reads
measured values, and the costs of trainings to a target.
"""
