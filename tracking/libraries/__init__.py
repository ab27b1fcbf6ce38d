"""One file for each tracking program; the library of a program is loaded only when it is used.

Each file has a function `open_tracker`, which takes the folder or address of the data: `tensorboard`,
`mlflow`, `wandb`, `trackio`.
"""
