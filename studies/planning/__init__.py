"""A study is compared with a store: what is done, what is left, what it costs, how far it can reach.

`plan` puts it together: `time_estimates`, `reach_limits`, and the `subset` of a grid that somebody names.
`status` says what is done, `trial_values` what was measured, `best_points` what a search found, and
`probe_targets` which models can be probed.
"""
