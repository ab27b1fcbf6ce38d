"""Use of a trained model from its file alone: the same symbols, masks and arithmetic as in training.

`trained_model` loads a file and does all of it. `next_symbols` reads a text step by step, `text_generation`
continues one, `predictions` answers line by line, `text_file` scores a text, and `export` writes programs
that run without activemem.
"""
