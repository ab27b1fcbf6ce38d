"""Sentence pairs: read, split, tokenised once, and batched.

`reader` takes them from published files, `splitting` gives each to one split, `writer` writes them in
numbers, `corpus` opens what was written, and `batches` are of like lengths.
"""
