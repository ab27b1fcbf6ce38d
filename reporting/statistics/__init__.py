"""Statistics for results with few seeds.

`estimates` has means with their spreads, and compares values by seed. `pooled_differences` compares cells
with a baseline at few seeds. `look_levels` has the levels of interim tests. `power_law` fits power laws, and
`speedup` has ratios of cells' costs to a target.
"""
