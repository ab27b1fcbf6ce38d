"""Use of trained models from their files.

Symbols, masks and arithmetic are the same as in training. `trained_model` loads a file and is the interface
to the rest. `text_generation` continues a text, `predictions` answers line by line, and
`hub_folder` writes the folder that `transformers` loads through `huggingface`.
"""
