"""Statistics of a few seeds.

`estimates` has centres and their spreads, `paired_tests` compares values by seed, `pooled_differences` cells
with a baseline at few seeds, `sequential` the level of several looks, and `decided_differences` holds those
of a table to it. `factor_effects` fits what factors do, of which `factor_terms` says what a design can tell.
`stratified_bootstrap` aggregates runs over tasks, `power_law` fits one, `paired_bootstrap` compares
translations by their sentences.
"""
