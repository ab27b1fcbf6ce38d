"""The command line: the only folder that prints."""
