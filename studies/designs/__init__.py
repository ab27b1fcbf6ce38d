"""Designs other than the grid, one in each file, found by the name in `[study] design`.

`one_at_a_time` changes one factor of the baseline, `zip` takes levels in step. `cumulative` adds one change
after the other, and `path` first the best one. `fractional` and `plackett_burman` are fractions of two-level
grids; `random` and `latin_hypercube` are samples. Each has `KIND`, a subclass of `schema.design.Design`.
"""
