"""Decoders: searches for the output that a transducer finds most likely, scored as in teacher forcing.

`decode` takes sentences and gives `outputs`; `greedy`, `beam` and `length_search` are the searches.
"""
