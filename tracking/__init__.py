"""Trackers: other programs that show a study's trials; nothing that they do affects a training.

`contract` defines what a tracker can do. Each tracker has one file in `libraries`, which `contract` finds
by name. `feed` feeds trackers while a study runs, each in its own thread. `export` feeds them afterwards,
from the store. `search_export` writes a search of a store in Optuna's format.
"""
