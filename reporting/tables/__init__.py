"""A table is data before it is printed: rows, columns, cells, marks and footnotes."""
