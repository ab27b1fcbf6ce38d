"""The kinds of tables and figures. Each is one module: keys, checks, values, table and drawing.

The name of the module is the value of `kind` in a study file. A module has `TABLE`, `CURVE` or both;
`studies/presentation/kinds.py` declares what these must offer.
"""
