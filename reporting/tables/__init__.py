"""A table is data before it is text.

`table` is that data, made by the kind of the table in `kinds`. Of tables of cells, `axes`
are rows and columns, `tally` the values of each cell, `cells` what stands in it, `bold` the best of a
column, `differences` those from a baseline, `captions` the words,
`published` a paper's numbers beside ours, and `unsolved` a note where nothing was learnt. `tidy` is the long
form for programs, `render` has the formats, and `format_conformance` what each of them must hold to.
"""
