"""Use of a trained model's file: the same symbols, masks and arithmetic as in training.

`trained_model` loads a file and is the interface to the rest. `text_generation` continues a text,
`predictions` answers line by line, and `export` writes programs that run without activemem.
"""
