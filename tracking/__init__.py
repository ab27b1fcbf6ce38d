"""Trackers: other programs that show the trials of a study.

Errors of a tracker never affect a training. `contract` defines what a tracker can do. Each tracker has one
file in `libraries`, which `contract` finds by name. `feed` sends events to trackers while a study runs, with
a thread for each tracker. `export` sends stored results to a tracker later. `search_export` writes a stored
search in Optuna's format, and `importance` has Optuna's importance of its dimensions.
"""
