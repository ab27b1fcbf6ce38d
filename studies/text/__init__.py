"""Reads TOML with positions, applies overrides, and shows faults under their lines.

`document` is a file as read, with the faults found in it, `toml_positions` its places, and `errors` draws
faults. `strict_model` is what a table is, and says what is wrong with one. `units` writes numbers,
`command_line` commands, `toml_writer` tables.
"""
