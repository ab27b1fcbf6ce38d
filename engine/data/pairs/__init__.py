"""Sentence pairs: read, split, tokenised once, and batched."""
