"""Tables as data, and their output formats.

`table` has a table's data, made by its kind in `kinds`, and the long form for programs. The other modules
make tables of cells. `axes` has rows and columns, `tally` the values of each cell, and `cells` assembles the
table. `differences` computes differences from a baseline, and the best of a column. `captions` writes the
sentences, and `published` adds a paper's numbers. `render` has the formats, and `format_conformance` the
checks that each must pass.
"""
