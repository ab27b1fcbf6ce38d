"""The check of a syntax tree against the vocabulary.

It builds the recipe's tree and collects all faults. `checker` walks the tree, and `arguments`
binds and checks the arguments of a call.
"""
