"""Sequences of one's own with what is to be learnt of each, in numbers.

`corpus` writes them once and opens them, `batches` are drawn anew in each pass.
"""
