"""Findings of a search, from its points; a point is all trials with the same values.

`studies.searches` defines the points. `noise` estimates how much of the lead of the best points is noise.
`promotion` writes the study that decides whether the best points hold, and `path_study` the study of the
path to the best point.
"""
