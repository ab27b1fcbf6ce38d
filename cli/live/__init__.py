"""Live output on standard error; it is erased from a terminal at the end.

`run` runs a study and prints a summary. `until_decided` reads the options of a run and adds seeds to it,
`watch` follows a run elsewhere, and `display` shows all of them.
"""
