"""A summary is a table whose numbers are each over many cells of a design.

`effects` tells what each factor does, with the words of `effects_caption`.
"""
