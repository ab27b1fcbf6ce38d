"""Use of trained models from their files, with the symbols, masks and arithmetic of the training.

`trained_model` loads a file and is the interface to the rest. `text_generation` continues a text,
`predictions` answers line by line, and `export` writes programs that run without activemem.
"""
