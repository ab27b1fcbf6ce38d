"""Decoders: they search for a transducer's most likely output, scored as in teacher forcing.

`decode` takes sentences; `searches` and `length_search` find their outputs, and `measures` score them.
"""
