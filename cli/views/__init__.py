"""Functions that format results of commands as lines of text.

`catalog`, `datasets`, `models` and `paper` list what is available. `settings`, `status` and `query`
format what their commands print. `missing` lists ablations that a reviewer may request, with costs.
`store_upkeep` lists the faults in a store's files. `trial_lines` names trials in columns, and formats
progress and metrics as lines.
"""
