"""A kind of table or figure is one module: its keys, its checks, its values, its table and its drawing.

A module is found by its name, which is what `kind` says in a study file. It has `TABLE`, `CURVE` or both;
`studies/presentation/kinds.py` declares what these must offer.
"""
