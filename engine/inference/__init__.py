"""A trained model is used as it was trained, by its file alone: the same symbols, masks and arithmetic.

`trained_model` loads a file and does all of it. `next_symbols` reads a text step by step, `text_generation`
goes on with one, `predictions` answers line by line, `text_file` scores a text, and `export` writes programs
that run without activemem.
"""
