"""Runs that another program has trained, which `activemem judge` compares.

`keys.py` has the keys of `[runs]`, `files.py` reads files of all forms into one row a run, `runs.py` finds
the cells and the values of the rows, and `study.py` makes a study of them.
"""
