"""Decoders: they search for a transducer's most likely output, scored as in teacher forcing.

`decode` takes sentences and returns `outputs`; `greedy`, `beam` and `length_search` implement the searches.
"""
