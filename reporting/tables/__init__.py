"""A table is data before it is printed: rows, columns, cells, marks and footnotes.

`table` is that data and `build` makes it: `axes` are rows and columns, `tally` gathers values, `pick_best`
chooses among levels, `cells` fills in numbers and words, `bold` marks the best, `differences` are those from
a baseline, `captions` describe what is shown. `published_match` and `published_layout` put a paper's numbers
beside ours, `paper_tables` makes a paper's own; `summaries` has tables over whole designs. `tidy` is the long
form, and `render` prints, whose formats hold to `format_conformance`.
"""
