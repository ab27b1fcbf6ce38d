"""What a study shows of its cells: tables and figures, checked against its factors and the metrics.

`reader` reads them, and `kinds` finds the kind of each by its name. `selection` keeps some of the levels, and
`changes` names cells by what differs from their baseline. `metric_words` says what the settings of trials
make of a metric, `design_notes` what a study's design can tell.
"""
