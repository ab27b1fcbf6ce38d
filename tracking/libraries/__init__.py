"""One file for each program that shows trials; its library is loaded only when it is used.

Each has a function `open_tracker`, which takes the place: `tensorboard`, `mlflow`, `wandb`, `trackio`.
"""
