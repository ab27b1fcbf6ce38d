"""What a study shows of its cells: tables and figures, checked against its factors and the metrics.

`table` with `table_checks`, `effects`, `scores`, `scaling`, `curve`, `effect_figures` and, of searches,
`search` are read by `reader`; `metric_checks` knows metrics, `selection` keeps some of the levels,
`named_levels` finds the levels that they name, and
`changes` names cells by what differs from their baseline. `metric_words` says what the settings of trials
make of a metric, `design_notes` what a study's design can tell.
"""
