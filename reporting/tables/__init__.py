"""Tables as data, and the formats that render them.

`table` is the data of a table, made by the table's kind in `kinds`, and its long form for programs. The other
modules make tables of cells. `axes` are rows and columns, `tally` the values of each cell, and `cells` the
table that is made of them. `differences` finds differences from a baseline, and the best of a column.
`captions` writes the sentences, and `published` adds a paper's numbers. `render` has the formats, and
`format_conformance` the checks that each must pass.
"""
