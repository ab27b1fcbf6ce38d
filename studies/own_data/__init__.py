"""Readers of the user's own data files; faults are reported with file, line and column.

`own_corpus` reads the table `corpus = { … }`. `texts` reads a text; `tables` reads labelled sequences and
sentence pairs. `reader` reads each file once, and `folders` lists the files of a path. `cells` and `columnar`
read columns, `rows` checks their values, and `summary` has the facts for a plan.
"""
