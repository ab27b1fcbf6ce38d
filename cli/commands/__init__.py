"""A command parses its arguments and delegates: one file a group of commands.

`recipe`, `block`, `task`, `study`, `probe`, `table`, `curve`, `claim`, `report`, `data` and `config`.
"""
