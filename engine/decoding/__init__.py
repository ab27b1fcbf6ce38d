"""Decoders, which search for the most likely output of a sequence-to-sequence model.

The score of an output equals its score with teacher forcing. `searches` decodes sentences, and `measures`
score their outputs.
"""
