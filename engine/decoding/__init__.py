"""Decoders, which search for a transducer's most likely output; scores are those of teacher forcing.

`searches` decodes sentences, and `measures` score their outputs.
"""
