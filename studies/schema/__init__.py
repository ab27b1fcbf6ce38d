"""Tables of a study file that define the trainings: keys, types and bounds.

`settings` has [study], [model] and [decode], `training` has [train], `search_settings` has [search].
`factors`, `design` with its reader, and `search` define the cells and points. `source_sheet` lists the
sources of settings, `epoch_metrics` the metrics of each epoch, and `level_names` formats levels.
"""
