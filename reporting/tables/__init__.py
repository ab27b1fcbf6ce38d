"""Tables: their data, and the formats to which they are rendered.

`table` has a table's data, made by its kind in `kinds`, and the long form for programs. The other modules
make tables of cells. `cells` has their rows, columns and contents, made of the values in `tally`.
`differences` computes differences from a baseline, the best of a column, and the sentences of the
caption; `published` adds a paper's numbers. `render` has the formats, and `format_conformance` the checks
that each must pass.
"""
