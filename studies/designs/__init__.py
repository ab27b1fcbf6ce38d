"""Designs other than the grid; each file has the name of its design in `[study] design`.

`one_at_a_time` changes one factor of the baseline. `zip` combines the first levels of all factors, then the
second levels, and so on. `cumulative` adds changes in the order of the file, and `path` adds the best change
first. `fractional` and `plackett_burman` are fractions of two-level grids; `random` and `latin_hypercube` are
samples. Each has `KIND`, a subclass of `schema.design.Design`.
"""
