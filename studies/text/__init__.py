"""Reads TOML with positions, applies overrides, and shows faults under their lines.

`document` is a file as read, with `toml_positions` and `overrides`; `strict_model` is what a table is,
`pydantic_messages` says what is wrong with one. `errors` draws faults, `diagnostics` gathers them, `units`
writes numbers, `command_line` commands, `key_words` what a key takes, and `toml_writer` tables.
"""
