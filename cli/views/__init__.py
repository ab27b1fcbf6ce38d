"""A view is the result of a command as lines.

`blocks`, `catalog`, `datasets`, `models` and `paper` are lists of what there is; `settings`, `plan`, `status`
and `query` are answers, `store_upkeep` is what is wrong with the files of a store. `trial_lines` writes
progress and metrics in lines, and `trial_names` names trials in columns, points of a search by their own
values.
"""
