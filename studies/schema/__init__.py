"""The tables of a study file that say what is trained: their keys, types and bounds.

`settings` has [study], [model] and [decode], `training` has [train], `search_settings` has [search].
`factors`, `design` with its reader, and `search` say which cells and points there are. `source_sheet` says
where settings come from, `epoch_metrics` what a trial measures after each epoch, and `level_names` names
levels.
"""
