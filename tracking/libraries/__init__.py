"""Implementations of trackers, one file for each program.

The library of a program is loaded only when the program is used. Each file has a function `open_tracker`,
which takes the folder or address of the data: `tensorboard`, `mlflow`, `wandb`, `trackio`.
"""
