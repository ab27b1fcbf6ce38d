"""Choice of additional seeds that decide the most per hour of training.

`next_seeds` chooses among the `candidate`s. `of_claims` finds candidates that would decide claims, and
`of_tables` candidates that would decide the differences of tables with a `smallest_difference`.
"""
