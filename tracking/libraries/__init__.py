"""One file for each program that shows trials; its library is loaded only where it is asked for.

Each has a function `open_tracker`, which takes the place: `tensorboard`, `mlflow`, `wandb`, `trackio`.
"""
