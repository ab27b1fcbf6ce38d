"""What a search found is read off its points, of which each is all trials of the same values.

`points` are these with their values and costs, in the order in which they ended; `fronts` says which of them
no other surpasses.
"""
