"""Use of a trained model from its file alone: the same symbols, masks and arithmetic as in training.

`trained_model` loads a file and does all of it. `text_generation` continues a text, `predictions` answers
line by line, and `export` writes programs that run without activemem.
"""
