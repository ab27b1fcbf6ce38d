"""Sequences of one's own with what is to be learnt of each, in numbers.

`own_rows` reads them from the folder of data, `corpus` writes them in numbers once and opens them, and
`batches` are drawn anew in each pass.
"""
