"""Schedulers, which give points up by what the store holds; the rules are the same with and without Ray.

`factory` makes the schedulers that compare points after each epoch. `race` compares points after each seed,
and `rungs` after each rung, which is a training of its own.
"""
