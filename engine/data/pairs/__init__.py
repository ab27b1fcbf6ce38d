"""Sentence pairs: read, split, tokenised once, and batched.

`reader` reads them and gives each to one split, `writer` writes them in numbers, `corpus` opens what was
written, and `batches` have similar lengths.
"""
