"""Trackers: other programs that show a study's trials; nothing that they do reaches a training.

`contract` is what each can do, with one file for each in `libraries`, which `opening` finds by name.
`listener` feeds them while a study runs, in threads of its own, of which `feed` is one; `export` feeds them
afterwards, from the store, and `trials` are what they receive. `search_export` writes a search in a store as
Optuna keeps one.
"""
