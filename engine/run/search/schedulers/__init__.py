"""A scheduler gives points up by what the store holds of them, here and on Ray by the same rule.

`factory` makes the scheduler of a search that compares points after each epoch, `race` compares them after
each seed, and `rungs` after each rung that is a training of its own.
"""
