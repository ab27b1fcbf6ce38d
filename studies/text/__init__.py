"""Reads TOML with positions, applies overrides, and shows faults under their lines.

`document` is a file with its faults, `toml_positions` finds positions, and `errors` formats faults.
`strict_model` validates tables. `units` formats numbers, `command_line` commands, and `toml_writer` tables.
"""
