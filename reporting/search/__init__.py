"""What a search found is read off its points, of which each is all trials of the same values.

The points are those of `studies.searches`. `fronts` says which of them no other surpasses, `noise` how
surely. `point_columns` tells points apart by their resolved recipes. `promotion` writes the study that
decides whether the best of them hold, `path_study` that of the way to them.
"""
