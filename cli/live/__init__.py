"""Live output on standard error, which is erased from a terminal at the end.

`run` runs a study, adds seeds to it, and prints a summary. `watch` follows a run elsewhere, and `display`
shows all of them.
"""
