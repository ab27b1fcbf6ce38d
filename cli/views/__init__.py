"""A view is the result of a command as lines, and as data for programs.

`blocks`, `tasks`, `registries`, `studies`, `datasets` and `models` are lists of what there is; `settings`,
`plan`, `status` and `query` are answers, `store_upkeep` is what is wrong with the files of a store.
`headline` knows a study's own metric, `trial_lines` writes progress and metrics in lines,
and `trial_names` names trials in columns, points of a search by their own values.
"""
