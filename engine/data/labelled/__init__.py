"""Labelled sequences of the user's own, in numbers.

`corpus` writes them once and opens them; `batches` are drawn anew in each pass.
"""
