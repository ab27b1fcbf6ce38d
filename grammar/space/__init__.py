"""The space of recipes that a recipe with search dimensions can become.

`space` has the class `Space`, `derivations` the ways of choosing a member, and `overlaps` the test whether
two ways can give the same member. `cardinality` and `budget` are what `Space` counts with.
"""
