"""The check of a syntax tree against the vocabulary.

It builds the recipe's tree and collects all faults. `checker` walks the tree, `arguments` binds the
arguments of a call, `scalars` checks one value, and `special_forms` are the forms that are no blocks.
"""
