"""Vocabularies: mappings between symbols and numbers.

`vocabulary` has their contract. `sentences` has vocabularies of single sentences, which begin with four
special numbers, and `texts` those of whole texts, which have a mark after each line or document. `pieces` has
the pieces of SentencePiece for both, and `tokenizers` those of files. `build` learns and restores
vocabularies by their kind.
"""
