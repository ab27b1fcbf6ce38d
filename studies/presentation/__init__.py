"""The tables and figures of a study, checked against its factors and metrics.

`kinds` has what the keys of all kinds share. The keys of each kind are in `table_keys`, `figure_keys`,
`law_keys` or `point_keys`, and `reader` reads those of a study file. `changes` names cells by their
difference from a baseline, and `metric_words` describes a metric by the trials' settings.
"""
