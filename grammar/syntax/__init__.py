"""A text becomes a concrete syntax tree with spans; no block is known here.

`tokenizer` cuts the text, `parser` has one method for each rule, and `syntax_tree` is the tree.
"""
