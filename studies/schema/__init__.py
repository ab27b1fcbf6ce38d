"""The tables of a study file: their keys, types and bounds, and whether they fit together.

`settings` has [study], [model], [search] and [decode], `training` has [train]; `factors`, `design` with
`design_reader`, and `search` say which cells there are. `table` with `table_checks` and `selection`, and
`curve`, are read by `presentation`; `changes` names cells by what differs from their baseline. `source_sheet`
says where settings come from, `epoch_metrics` what a trial measures after each epoch; `level_names` writes
levels and reasons.
"""
