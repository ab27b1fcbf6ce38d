"""The tables and figures of a study, checked against its factors and metrics.

`kinds` reads each by the class of its kind. `selection` keeps some of the levels, and `changes` names cells
by their difference from a baseline. `metric_words` words a metric by the settings of trials, `design_notes`
says what a study's design can show.
"""
