"""The points of a search say what it found; each is all trials of the same values.

The points are those of `studies.searches`. `noise` says how surely the best lead. `promotion` writes the
study that decides whether the best of them hold, `path_study` that of the way to them.
"""
