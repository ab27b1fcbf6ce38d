"""Every table of a study file: its keys, types and bounds, and what fits together.

`settings` are [study], [model], [train] and [search]; `factors`, `design` with `design_reader`, and
`search` say which cells there are. `table` with `table_checks` and `selection`, and `curve`, are read by
`presentation`. `source_sheet` says where settings come from; `level_names` writes levels and reasons.
"""
