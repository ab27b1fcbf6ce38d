"""Reading and writing of TOML: positions, overrides, and faults.

`document` is a file with its faults, `toml_positions` finds positions and writes tables, and `errors`
formats faults and commands. `strict_model` validates tables, and `units` formats numbers.
"""
