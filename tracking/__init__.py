"""Trackers: other programs that show a study's trials; nothing that they do reaches a training.

`contract` is what each of them can do, with one file for each in `libraries`, which `opening` finds by
name. `places` has their names; `trials` and `tables` are what they receive. `listener` feeds them while a
study runs, in threads of its own, of which `feed` is one; `export` feeds them afterwards, from the store.
`search_export` writes a search in a store as Optuna keeps one.
"""
