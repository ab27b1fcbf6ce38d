"""Statistics for few seeds.

`estimates` has centres and their spreads. `paired_tests` compares values by seed, and `pooled_differences`
compares cells with a baseline at few seeds. `sequential` computes the level of several looks, at which
`decided_differences` tests the differences of a table. `factor_effects` fits the effects of factors that a
design can estimate. `stratified_bootstrap` aggregates runs over tasks, `power_law` fits power laws,
`speedups` has ratios of what cells take to a target, and `paired_bootstrap` compares translations by their
sentences.
"""
