"""What a search found is read off its points, of which each is all trials of the same values.

`points` are these with their values and costs, in the order in which they ended; `fronts` says which of them
no other surpasses, `noise` how surely, `importance`
which dimensions matter. `promotion` writes the study that decides whether the best of them
hold, `path_study` that of the way to them.
"""
