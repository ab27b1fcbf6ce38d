"""A recipe with search dimensions is a space: the recipes that it can become, each of them once.

`space` has the class that the other modules serve: `enumeration` lists the members in order,
`cardinality` counts them, `sampling` draws them, and `budget` leaves out what is too large. `partition`
splits a space into disjoint classes, with `partition_integers`, `partition_multisets`,
`partition_sequences` and `partition_types` for the parts that several options share; `derivations` finds
how a member is derived, and `rebuild` puts it together again.
"""
