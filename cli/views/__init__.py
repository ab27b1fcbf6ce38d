"""A view is the result of a command as lines, and as data for programs."""
