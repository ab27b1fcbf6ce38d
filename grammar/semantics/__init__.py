"""A syntax tree is checked against the vocabulary and becomes a recipe's tree; all faults are told at once.

`checker` does so, `arguments` binds those of a call, `scalars` checks one value, and `special_forms` are
the forms that are no blocks.
"""
