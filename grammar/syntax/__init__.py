"""A text becomes a concrete syntax tree with spans; no block is known here.

`tokenizer` cuts the text, and `parser` has the tree and one method for each rule.
"""
