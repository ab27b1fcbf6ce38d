"""A syntax tree is held against the vocabulary and becomes a recipe's tree, all faults told at once."""
