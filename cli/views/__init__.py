"""A view is the result of a command as lines.

`blocks`, `catalog`, `datasets`, `models` and `paper` list what is available. `settings`, `plan`, `status` and
`query` are answers. `missing` lists what a reviewer will ask for, with its costs. `store_upkeep` lists the
faults in the files of a store. `trial_lines` writes progress and metrics in lines. `trial_names` names trials
in columns, and points of a search by their own values.
"""
