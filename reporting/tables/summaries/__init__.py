"""A summary is a table whose numbers are each over many cells of a design.

`build` makes it: `effects` tells what each factor does, with the words of `effects_caption`, and `aggregate`
how good each method is over all tasks, `laws` how a result falls with size. Of a search `points` lists the
best.
"""
