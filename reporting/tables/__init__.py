"""Tables as data, and the formats that render them.

`table` is the data of a table, made by the table's kind in `kinds`. The other modules make tables of cells.
`axes` are rows and columns, `tally` the values of each cell, and `cells` its content. `bold` finds the best
of a column, and `differences` the differences from a baseline. `captions` writes the sentences, `published`
adds a paper's numbers, `unsolved` and `untrained` notes where nothing was learnt. `tidy` is the long form
for programs. `render` has the formats, and `format_conformance` the checks that each format must pass.
"""
