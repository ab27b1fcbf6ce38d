"""Files of the user's own become what a trial knows of them, or faults with their file, line and column.

`own_corpus` reads the table `corpus = { … }`: of a text by `texts`, of sequences by `labelled`, of sentences
by `pairs`, both as rows of `tables`. `reader` reads each file once, within the `limits`; `folders` says which
files a path stands for. `rows` are made of `cells`, which `delimited`, `json_lines` and `columnar` read, the
last in a `columnar_worker`, and of `values` that are checked one by one. `summary` is
what a plan says of them.
"""
