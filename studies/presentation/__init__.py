"""The tables and figures of a study, checked against its factors and metrics.

`kinds` reads each by the class of its kind, and selects its levels. `changes` names cells by their difference
from a baseline, and `metric_words` describes a metric by the trials' settings.
"""
