"""Decoders: they search for a transducer's most likely output, scored as in teacher forcing.

`searches` decodes sentences, and `measures` score their outputs.
"""
