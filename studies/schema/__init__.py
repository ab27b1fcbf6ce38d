"""Tables of a study file that define the trainings: keys, types and bounds.

`settings` has [study], [model], [train] and [decode], `limits` the key of that name, `search_settings` has
[search]. `factors` reads levels and finds them by name; `design` and `search` define the cells and points,
and `design` finds the features that single keys turn on. `source_sheet` lists the sources of settings, and
`reported_metrics` the metrics of each epoch.
"""
