"""The kinds of tables and figures that a study file can name.

Each is one module: keys, checks, values, table and drawing. The module's name is the value of `kind` in a
study file. A module has `TABLE`, `CURVE` or both, with the interfaces of `studies/presentation/kinds.py`.
"""
