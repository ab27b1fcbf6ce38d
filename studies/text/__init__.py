"""TOML files with positions, overrides, and faults shown under their lines.

`document` is a file with its faults, `toml_positions` finds positions, and `errors` formats faults.
`strict_model` validates tables. `units` formats numbers, `command_line` commands, and `toml_writer` tables.
"""
