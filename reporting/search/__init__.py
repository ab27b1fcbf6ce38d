"""Statistics on a search's points.

A point is a combination of values that the search tried, with all its trials. `studies.searches` defines the
points. `noise` estimates how much of the best points' lead is noise. `promotion` writes the study that
confirms the best points on fresh seeds.
"""
