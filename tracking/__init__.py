"""Trackers: other programs that show a study's trials; nothing that they do affects a training.

`contract` defines what a tracker can do. Each tracker has one file in `libraries`, which `opening` finds
by name. `feed` feeds trackers while a study runs, in its own threads. `export` feeds them afterwards,
from the store, and writes a search in Optuna's format.
"""
