"""The tables of a study file: their keys, types and bounds, and whether they fit together.

`settings` has [study], [model], [train], [search] and [decode]; `factors`, `design` with `design_reader`, and
`search` say which cells there are. `table` with `table_checks` and `selection`, and `curve`, are read by
`presentation`. `source_sheet` says where settings come
from; `level_names` writes levels and reasons.
"""
