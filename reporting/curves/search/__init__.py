"""A figure of a search shows its points, each the mean over its seeds.

`build` makes it: `progress` is what was best after each point, `dimensions` every point by its values, and
`planes` by two of them.
"""
