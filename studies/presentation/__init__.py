"""The tables and figures of a study, checked against its factors and metrics.

`kinds` reads each by the class of its kind. `selection` selects levels, and `changes` names cells by their
difference from a baseline. `metric_words` describes a metric by the trials' settings, and `design_notes`
explains what a study's design can show.
"""
