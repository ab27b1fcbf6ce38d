"""What a study tells is told to other programs as they want it, and nothing that they do reaches a training.

`contract` is what each of them can do, with one file for each in `libraries`, which `opening` finds by name.
`places` are their names; `trials` and `tables` are what they are told of. `listener` tells it while a study
runs, in threads of its own, of which `feed` is one; `export` tells it afterwards, from the store.
`search_export` writes a search in a store as Optuna keeps one.
"""
