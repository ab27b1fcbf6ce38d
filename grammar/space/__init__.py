"""The space of recipes that a recipe with search dimensions can become.

`space` has the class `Space`, `derivations` the ways of choosing a member.
"""
