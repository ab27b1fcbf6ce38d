"""Evaluation of a search's points; a point is all trials with the same values.

`studies.searches` defines the points. `noise` estimates how much of the best points' lead is noise, and
which differences the spread over seeds hides. `promotion` writes the study that confirms the best points
on fresh seeds, and the study of the path to the best point.
"""
