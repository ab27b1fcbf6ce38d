"""Files of the user's own become what a trial knows of them, or faults with their file, line and column.

`own_corpus` reads the table `corpus = { … }`: of a text by `texts`, of labelled sequences and sentence
pairs by `tables`. `reader` reads each file once, `folders` says which files a path stands for, `cells` and
`columnar` read columns, `rows` checks their values, and `summary` is what a plan says of them.
"""
