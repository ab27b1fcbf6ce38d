"""The tables of a study file that say what is trained: their keys, types and bounds.

`settings` has [study], [model] and [decode], `training` has [train], `search_settings` has [search] with its
`objectives`; `factors`, `conditions`, `design` with `design_reader` and `design_checks`, `ablation` and
`search` say which cells there are. `source_sheet` says where settings come from, `epoch_metrics` what a
trial measures after each epoch; `level_names` writes levels and
reasons, and finds the level that a name stands for.
"""
