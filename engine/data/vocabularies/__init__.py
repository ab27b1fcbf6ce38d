"""Vocabularies: mappings between the symbols of sentences and numbers.

`words` has the interface of vocabularies, and vocabularies of words, spelled words and bytes. `subwords` has
vocabularies of pieces.
`build` learns and restores vocabularies by their kind.
"""

from ....lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
