"""A command parses its arguments and delegates: one file a group of commands."""
